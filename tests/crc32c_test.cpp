// SPDX-License-Identifier: Apache-2.0
#include "support/bitwise_crc32c.hpp"
#include "support/byte_strings.hpp"
#include "support/catch.hpp"

#include <kvarts/crc32c.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace {

using kvarts::crc32c;
using kvarts::test::bitwise_crc32c;
using kvarts::test::bytes_of;

constexpr std::array<std::byte, 9> digits() {
  std::array<std::byte, 9> bytes{};
  for (std::size_t i = 0; i < 9; ++i) bytes[i] = static_cast<std::byte>('1' + i);
  return bytes;
}

static_assert(crc32c(digits()) == 0xE3069283u, "the check value of CRC-32C, at compile time");
static_assert(crc32c({}) == 0);

TEST_CASE("CRC-32C gives the examples of RFC 3720, B.4") {
  std::array<std::byte, 32> bytes{};
  CHECK(crc32c(bytes) == 0x8A9136AAu);
  bytes.fill(std::byte{0xFF});
  CHECK(crc32c(bytes) == 0x62A8AB43u);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  CHECK(crc32c(bytes) == 0x46DD794Eu);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(31 - i);
  CHECK(crc32c(bytes) == 0x113FDB5Cu);

  std::array<std::byte, 48> read_command{};
  read_command[0] = std::byte{0x01};
  read_command[1] = std::byte{0xC0};
  read_command[16] = std::byte{0x14};
  read_command[22] = std::byte{0x04};
  read_command[27] = std::byte{0x14};
  read_command[31] = std::byte{0x18};
  read_command[32] = std::byte{0x28};
  read_command[40] = std::byte{0x02};
  CHECK(crc32c(read_command) == 0xD9963A56u);
}

TEST_CASE("CRC-32C equals its definition for every length, alignment and split") {
  constexpr unsigned seed = 20240611;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(97);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t size = 0; begin + size <= bytes.size(); ++size) {
      auto const part = std::span<std::byte const>(bytes).subspan(begin, size);
      std::uint32_t const expected = bitwise_crc32c(part);
      REQUIRE(crc32c(part) == expected);
      std::size_t const cut = size * 5 / 13;
      REQUIRE(crc32c(part.subspan(cut), crc32c(part.first(cut))) == expected);
    }
  }
}

TEST_CASE("CRC-32C tells every single flipped bit and every swap of neighbours") {
  std::string const text = "keys and values of layer 12, head 3";
  std::uint32_t const expected = crc32c(bytes_of(text));
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      REQUIRE(crc32c(bytes_of(damaged)) != expected);
    }
    if (i + 1 < text.size() && text[i] != text[i + 1]) {
      std::string damaged = text;
      std::swap(damaged[i], damaged[i + 1]);
      REQUIRE(crc32c(bytes_of(damaged)) != expected);
    }
  }
}

}  // namespace
