// SPDX-License-Identifier: Apache-2.0
/// @file
/// Paged caches of any scheme behind plain functions, so that a test of all presets is a loop.
/// Schemes of a test's own: make_any_scheme.hpp.
#pragma once

#include "support/cache_content.hpp"

#include <kvarts/attention.hpp>
#include <kvarts/cache_storage.hpp>
#include <kvarts/scheme.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::test {

/// `paged_cache` of some scheme.
class any_cache {
 public:
  virtual ~any_cache() = default;
  virtual int add() = 0;
  virtual status remove(int sequence) = 0;
  virtual encode_result append(int sequence, source_view keys, source_view values) = 0;
  virtual status freeze(int sequence, transform const& t) = 0;
  virtual int fork(int sequence) = 0;
  virtual status crop(int sequence, std::int64_t tokens) = 0;
  virtual status reorder(std::vector<int> const& parents) = 0;
  virtual status move_page(std::int32_t from, std::int32_t to) = 0;
  virtual bool exists(int sequence) const = 0;
  virtual bool frozen(int sequence) const = 0;
  virtual std::int64_t length(int sequence) const = 0;
  virtual std::int64_t free_pages() const = 0;
  virtual std::int64_t memory_bytes() const = 0;

  virtual content read(int sequence) const = 0;
  /// What a sequence of these rows should hold; null means that no transform is frozen yet.
  virtual content expected(rows const& k, rows const& v, std::int64_t tokens,
                           transform const* t) const = 0;
  /// Pools, windows, block tables and lengths: all that a call could have changed.
  virtual std::vector<std::byte> memory() const = 0;
  /// Codes and parameters of one page, keys then values.
  virtual std::vector<std::byte> page(std::int32_t index) const = 0;
  virtual std::vector<std::int32_t> table(int sequence) const = 0;
  virtual status attend(int sequence, int query_tokens, int query_heads, float const* queries,
                        float* output, float* lse, attention_options const& o) const = 0;
  /// One coded row, in coded space.
  virtual void coded_key(int sequence, int head, std::int64_t position, float* row) const = 0;
  virtual void coded_value(int sequence, int head, std::int64_t position, float* row) const = 0;
};

/// A scheme, its windows, and how it makes caches and transforms.
struct any_scheme {
  std::string name;
  windows window{};
  codec_info keys{};
  codec_info values{};
  int key_step = 1;
  int value_step = 1;
  bool waits = false;  ///< codes nothing until a transform is frozen
  bool centered = false;
  bool normed = false;
  rotation key_rotation{};
  rotation of_values{};
  std::function<std::unique_ptr<any_cache>(cache_options const&)> make;

  /// A transform of the kind that the scheme is meant for, but of random numbers.
  transform random_transform(random_source& random, int heads, int head_dim) const {
    transform t{heads, head_dim, {}, {}, key_rotation};
    for (int i = 0; i < heads * head_dim; ++i) {
      if (centered) t.center.push_back(static_cast<float>(random.normal()));
      if (normed) t.norm.push_back(static_cast<float>(0.5 + random.uniform()));
    }
    return t;
  }
};

/// Every preset, and schemes that no preset is like: groups of unlike lengths, awkward windows,
/// groups by default, codebooks (all_schemes.cpp).
std::vector<any_scheme> const& all_schemes();

/// One of each kind, and those that no preset is like: for tests that need no more.
std::vector<any_scheme> const& some_schemes();

inline any_scheme const& scheme_named(std::string_view name) {
  for (any_scheme const& s : all_schemes()) {
    if (s.name == name) return s;
  }
  throw std::invalid_argument("no scheme " + std::string(name));
}

}  // namespace kvarts::test
