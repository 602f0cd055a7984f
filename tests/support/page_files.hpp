// SPDX-License-Identifier: Apache-2.0
/// @file
/// The memory of one side of a tier, filled with bytes, and page files of it.
#pragma once

#include "support/random.hpp"

#include <kvarts/tier/page_file.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvarts::test {

using byte_vector = std::vector<std::byte>;

inline byte_vector random_bytes(random_source& random, std::int64_t count) {
  byte_vector bytes(static_cast<std::size_t>(count));
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.bits() & 0xFF);
  return bytes;
}

/// A page file, or `std::runtime_error` with the sentence.
inline byte_vector page_file(tier::page_format const& f, tier::page_place const& at,
                             byte_vector const& memory, std::int64_t page) {
  byte_vector file(static_cast<std::size_t>(tier::page_file_bytes(f, at)));
  problem const p = tier::write_page(f, at, memory, page, file);
  if (p) throw std::runtime_error(p.sentence());
  return file;
}

/// A digest whose bytes count up from `first`.
constexpr sha256_digest counted(int first) noexcept {
  sha256_digest d{};
  for (std::size_t i = 0; i < d.size(); ++i)
    d[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return d;
}

}  // namespace kvarts::test
