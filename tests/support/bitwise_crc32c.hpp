// SPDX-License-Identifier: Apache-2.0
/// @file
/// CRC-32C by the definition, a bit at a time and without tables: what tests compare with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvarts::test {

constexpr std::uint32_t bitwise_crc32c(std::span<std::byte const> bytes) {
  std::uint32_t remainder = 0xFFFFFFFFu;
  for (std::byte const byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      bool const in = ((static_cast<unsigned>(byte) >> bit) & 1u) != 0;
      bool const out = (remainder & 1u) != 0;
      remainder >>= 1;
      if (in != out) remainder ^= 0x82F63B78u;
    }
  }
  return ~remainder;
}

}  // namespace kvarts::test
