// SPDX-License-Identifier: Apache-2.0
/// @file
/// CRC-32C (Castagnoli), the checksum of .kvt files. Source: RFC 3720, section 12.1: polynomial
/// 0x1EDC6F41, reflected, initial value and final xor of all ones.
#pragma once

#include <kvarts/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kvarts {

namespace detail {

using crc32c_tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// Table `i` advances the remainder by a byte that `i` more bytes follow ("slicing by 8").
constexpr crc32c_tables make_crc32c_tables() noexcept {
  constexpr std::uint32_t reflected_polynomial = 0x82F63B78u;
  crc32c_tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) {
      remainder = (remainder >> 1) ^ ((remainder & 1u) != 0 ? reflected_polynomial : 0u);
    }
    tables[0][byte] = remainder;
  }
  for (std::size_t i = 1; i < tables.size(); ++i) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      std::uint32_t const before = tables[i - 1][byte];
      tables[i][byte] = (before >> 8) ^ tables[0][before & 0xFFu];
    }
  }
  return tables;
}

inline constexpr crc32c_tables crc32c_table = make_crc32c_tables();

}  // namespace detail

/// CRC-32C of `bytes`. A long message may come in pieces: `crc32c(b, crc32c(a))` is the checksum of
/// `a` followed by `b`; that of no bytes is 0.
constexpr std::uint32_t crc32c(std::span<std::byte const> bytes,
                               std::uint32_t before = 0) noexcept {
  auto const& table = detail::crc32c_table;
  std::uint32_t remainder = ~before;
  std::byte const* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;  // compilers make one load of this
    for (std::size_t i = 0; i < 8; ++i) word |= static_cast<std::uint64_t>(at[i]) << (8 * i);
    word ^= remainder;
    remainder = 0;
    for (std::size_t i = 0; i < 8; ++i) remainder ^= table[7 - i][(word >> (8 * i)) & 0xFFu];
  }
  for (; left > 0; --left, ++at) {
    std::uint32_t const index = (remainder ^ static_cast<std::uint32_t>(*at)) & 0xFFu;
    remainder = (remainder >> 8) ^ table[0][index];
  }
  return ~remainder;
}

}  // namespace kvarts
