// SPDX-License-Identifier: Apache-2.0
/// @file
/// Dumps in memory: what a .safetensors file of queries, keys and values would hold.
#pragma once

#include "safetensors.hpp"
#include "support/random.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kvarts::test {

/// Tensors of float32 that own their numbers.
class dump_file {
 public:
  dump_file() = default;

  /// Layers of normal random numbers: k and v `[tokens, kv_heads, head_dim]`, q `[queries, q_heads,
  /// head_dim]`.
  struct sizes {
    std::int64_t tokens, queries;
    int q_heads, kv_heads, head_dim;
  };
  dump_file(sizes const& s, std::vector<int> const& layers, std::uint64_t seed) {
    random_source random(seed);
    for (int const layer : layers) {
      std::string const name = "layers." + std::to_string(layer) + ".";
      add(name + "k", {s.tokens, s.kv_heads, s.head_dim}, random_source(random.bits()));
      add(name + "v", {s.tokens, s.kv_heads, s.head_dim}, random_source(random.bits()));
      add(name + "q", {s.queries, s.q_heads, s.head_dim}, random_source(random.bits()));
    }
  }
  dump_file(dump_file const&) = delete;
  dump_file& operator=(dump_file const&) = delete;

  /// Adds a tensor, or takes the place of one.
  std::vector<float>& add(std::string const& name, std::vector<std::int64_t> shape,
                          random_source random = random_source(1)) {
    std::int64_t count = 1;
    for (std::int64_t const extent : shape) count *= extent;
    auto& numbers = numbers_.emplace_back(static_cast<std::size_t>(count));
    for (float& x : numbers) x = static_cast<float>(random.normal());
    contents.tensors[name] = {tool::file_dtype::f32, std::move(shape),
                              std::as_bytes(std::span(numbers))};
    return numbers;
  }

  tool::safetensors contents;

 private:
  std::deque<std::vector<float>> numbers_;
};

}  // namespace kvarts::test
