// SPDX-License-Identifier: Apache-2.0
#include "support/allocation_watch.hpp"
#include "support/bitwise_crc32c.hpp"
#include "support/byte_strings.hpp"
#include "support/catch.hpp"

#include <kvarts/crc32c.hpp>
#include <kvarts/kvt.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using Catch::Matchers::ContainsSubstring;

constexpr std::size_t header_size = 256;

/// 33 tokens of 3 heads of 20 channels: 5 groups of 4 channels, 3 bits a code, all parts of a
/// transform.
kvt_header example_header() {
  kvt_header h;
  h.set_codec_name("symmetric3_narrow");
  h.code_bits = 3;
  h.group_axis = kvt_group_axis::channels;
  h.scale_type = kvt_scale_type::f16;
  h.zero_points = 1;
  h.source = dtype::bf16;
  h.layout = kvt_layout::head_tiles;
  h.transform = kvt_center | kvt_norm | kvt_rotation;
  h.group = 4;
  h.tile_tokens = 32;
  h.alignment = 128;
  h.heads = 3;
  h.head_dim = 20;
  h.tokens = 33;
  h.rotation_seed = 0x0123456789ABCDEFu;
  h.rotation_rounds = 2;
  h.payload_bytes = 1000;
  return h;
}

/// A whole file: header, transform of 2 x 60 floats, payload.
std::string example_file() {
  kvt_header h = example_header();
  std::string transform;
  for (int i = 0; i < 120; ++i) transform += number(0.5f + static_cast<float>(i));
  std::string payload;
  for (int i = 0; i < 1000; ++i) payload += static_cast<char>(i * 37 + i / 7);
  h.transform_crc = crc32c(bytes_of(transform));
  h.payload_crc = crc32c(bytes_of(payload));
  return text_of(serialize(h)) + transform + payload;
}

/// Writes `bytes` at `offset` of a header and makes its CRC right again.
std::string patched(std::string file, std::size_t offset, std::string const& bytes) {
  file.replace(offset, bytes.size(), bytes);
  auto const crc = bitwise_crc32c(bytes_of(file).first(header_size - 4));
  return file.replace(header_size - 4, 4, number(crc));
}

std::string sentence_of(std::string const& file) {
  problem const error = parse_kvt(bytes_of(file)).error;
  if (error) CHECK(error.code == status::bad_file);
  return error ? error.sentence() : "";
}

TEST_CASE("a .kvt header has the bytes that its description gives") {
  kvt_header h = example_header();
  h.transform_crc = 0x11223344u;
  h.payload_crc = 0x55667788u;
  std::string expected;
  expected += std::string("\x89KVT\r\n\x1A\n", 8);
  expected += number<std::uint16_t>(1) + number<std::uint16_t>(256);
  expected += number<std::uint32_t>(128);
  expected += "symmetric3_narrow" + std::string(15, '\0');
  expected += std::string("\x03\x01\x01\x01\x01\x00\x01\x07", 8);
  expected += number<std::uint32_t>(4) + number<std::uint32_t>(32);
  expected += number<std::uint32_t>(3) + number<std::uint32_t>(20);
  expected += number<std::uint64_t>(33);
  expected += std::string("\xEF\xCD\xAB\x89\x67\x45\x23\x01", 8);
  expected += number<std::uint32_t>(2);
  expected += std::string("\x44\x33\x22\x11", 4);
  expected += number<std::uint64_t>(1000);
  expected += std::string("\x88\x77\x66\x55", 4);
  expected += std::string(144, '\0');
  expected += number(bitwise_crc32c(bytes_of(expected)));
  REQUIRE(expected.size() == header_size);
  CHECK(text_of(serialize(h)) == expected);
}

TEST_CASE("a .kvt file comes back as it was written, without allocating") {
  std::string const file = example_file();
  allocation_watch const watch;
  kvt_result const read = parse_kvt(bytes_of(file));
  std::size_t const allocated = watch.bytes();
  CHECK(allocated == 0);
  REQUIRE_FALSE(read.error);
  kvt_header expected = example_header();
  expected.transform_crc = bitwise_crc32c(bytes_of(file).subspan(256, 480));
  expected.payload_crc = bitwise_crc32c(bytes_of(file).subspan(736, 1000));
  CHECK(read.header == expected);
  CHECK(read.header.codec_name() == "symmetric3_narrow");
  CHECK(text_of(read.transform) == file.substr(256, 480));
  CHECK(text_of(read.payload) == file.substr(736));
}

TEST_CASE("headers without transform, groups, scales or tokens are fine") {
  kvt_header h;
  h.set_codec_name("f16");
  h.code_bits = 16;
  h.heads = 1;
  h.head_dim = 1;
  CHECK_FALSE(check_kvt_header(h));
  CHECK(h.file_bytes() == 256);
  CHECK_FALSE(parse_kvt(serialize(h)).error);
  h.set_codec_name("a234567890123456789012345678901");  // 31 characters
  h.heads = 65536;
  h.head_dim = 1024;
  h.tokens = std::int64_t{1} << 30;
  h.payload_bytes = std::int64_t{1} << 57;
  CHECK_FALSE(check_kvt_header(h));
  h.payload_bytes = std::int64_t{1} << 62;
  h.transform = kvt_center | kvt_norm;
  CHECK_FALSE(check_kvt_header(h));
  CHECK(h.transform_bytes() == 536870912);
  CHECK(h.file_bytes() == 4611686018964258816 + 256);
}

TEST_CASE("every flipped byte and bit of a .kvt file is an error") {
  std::string const file = example_file();
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (int flip : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      INFO("byte " << i << " xor " << flip);
      REQUIRE(parse_kvt(bytes_of(damaged)).error);
    }
  }
}

TEST_CASE("a .kvt file cut or extended anywhere is an error") {
  std::string const file = example_file();
  for (std::size_t size = 0; size < file.size(); ++size) {
    std::vector<std::byte> const exact(bytes_of(file).begin(),
                                       bytes_of(file).begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE(parse_kvt(exact).error);
  }
  CHECK_THAT(sentence_of(file.substr(0, 255)), ContainsSubstring("255 bytes are too few"));
  CHECK_THAT(sentence_of(file.substr(0, 256)),
             ContainsSubstring("has 256 bytes, but its header promises 1736"));
  CHECK_THAT(sentence_of(file + '\0'), ContainsSubstring("has 1737 bytes"));
  CHECK_THAT(sentence_of(file + file), ContainsSubstring("has 3472 bytes"));
}

TEST_CASE("a .kvt file says what damaged it") {
  std::string const file = example_file();
  auto const converted = [&](std::string const& from, std::string const& to) {
    std::string text = file;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
    return text;
  };
  CHECK_THAT(sentence_of(converted("\r\n", "\n")), ContainsSubstring("converts line ends"));
  CHECK_THAT(sentence_of(converted("\n", "\r\n")), ContainsSubstring("converts line ends"));
  CHECK_THAT(sentence_of(converted("\x89", "\x09")), ContainsSubstring("drops bits"));
  CHECK_THAT(sentence_of(std::string(300, 'x')), ContainsSubstring("not a .kvt file"));

  auto const flipped = [&](std::size_t at) {
    std::string text = file;
    text[at] = static_cast<char>(text[at] ^ 0x10);
    return text;
  };
  CHECK_THAT(sentence_of(flipped(70)), ContainsSubstring("header is damaged"));
  CHECK_THAT(sentence_of(flipped(256)), ContainsSubstring("transform is damaged"));
  CHECK_THAT(sentence_of(flipped(735)), ContainsSubstring("transform is damaged"));
  CHECK_THAT(sentence_of(flipped(736)), ContainsSubstring("payload is damaged"));
}

struct lie {
  std::size_t offset;
  std::string bytes;
  std::string sentence;
};

TEST_CASE("a header that lies is refused by name, whatever its CRC says") {
  auto const u8 = [](unsigned value) { return number(static_cast<std::uint8_t>(value)); };
  auto const u32 = [](std::uint32_t value) { return number(value); };
  auto const u64 = [](std::uint64_t value) { return number(value); };
  std::vector<lie> const lies = {
      {8, u8(2), "format version is 2, but only 1"},
      {10, u8(1), "header bytes are 257, not 256"},
      {12, u32(0), "alignment is 0"},
      {12, u32(96), "alignment is 96, not a power of two"},
      {12, u32(1u << 31), "alignment is -2147483648"},
      {16, std::string(32, '\0'), "codec name is empty"},
      {16, std::string(32, 'a'), "longer than 31"},
      {16, "S", "character of code 83"},
      {18, "\xC3\xA4", "character of code 195"},
      {40, "x", "not padded with zeros"},
      {48, u8(0), "bits of a code are 0, not 1 to 32"},
      {48, u8(33), "bits of a code are 33"},
      {49, u8(3), "group axis is 3"},
      {49, u8(0), "group length of a row codec is 4, not 0"},
      {50, u8(4), "scale type is 4"},
      {50, u8(0), "zero-points without scales"},
      {51, u8(2), "zero-points is 2"},
      {52, u8(3), "source type is 3"},
      {53, u8(1), "packing is 1"},
      {54, u8(2), "layout is 2"},
      {54, u8(0), "tokens of a row record are 32, not 1"},
      {55, u8(8), "transform bits are 8"},
      {55, u8(3), "rounds without a rotation are 2"},
      {56, u32(0), "group length is 0, not 1 to 65536"},
      {56, u32(65537), "group length is 65537"},
      {60, u32(0), "tokens of a tile are 0"},
      {60, u32(0xFFFFFFFFu), "tokens of a tile are -1"},
      {64, u32(0), "heads are 0, not 1 to 65536"},
      {64, u32(65537), "heads are 65537"},
      {64, u32(0x80000000u), "heads are -2147483648"},
      {68, u32(0), "head_dim is 0, not 1 to 1024"},
      {68, u32(1025), "head_dim is 1025"},
      {72, u64((1ull << 40) + 1), "tokens are 1099511627777"},
      {72, u64(~0ull), "tokens are -1"},
      {72, u64(1ull << 40), "payload bytes are 1000, but the codes take 24739011624960"},
      {72, u64(0), "payload bytes are 1000, but the codes take 0"},
      {88, u32(0), "rotation rounds are 0, not 1 to 16"},
      {88, u32(17), "rotation rounds are 17"},
      {96, u64(999), "has 1736 bytes, but its header promises 1735"},
      {96, u64(742), "payload bytes are 742, but the codes take 743"},
      {96, u64(1ull << 62), "header promises 4611686018427388640"},
      {96, u64((1ull << 62) + 1), "payload bytes are 4611686018427387905"},
      {96, u64(~0ull), "payload bytes are -1"},
      {108, u8(1), "reserved bytes"},
      {251, u8(128), "reserved bytes"},
  };
  std::string const file = example_file();
  REQUIRE(sentence_of(patched(file, 12, u32(128))).empty());
  for (lie const& l : lies) {
    std::string const text = patched(file, l.offset, l.bytes);
    INFO("offset " << l.offset << ", expecting " << l.sentence);
    allocation_watch const watch;
    bool const refused = static_cast<bool>(parse_kvt(bytes_of(text)).error);
    std::size_t const allocated = watch.bytes();
    CHECK(refused);
    CHECK(allocated == 0);
    CHECK_THAT(sentence_of(text), ContainsSubstring(l.sentence));
  }
}

TEST_CASE("a geometry whose sizes overflow 64 bits is refused") {
  kvt_header h = example_header();
  h.heads = 65536;
  h.head_dim = 1024;
  h.tokens = std::int64_t{1} << 40;
  h.payload_bytes = std::int64_t{1} << 62;
  CHECK_THAT(check_kvt_header(h).sentence(), ContainsSubstring("1099511627776 tokens of 67108864"));
  h.rotation_rounds = 0;
  h.transform = 0;
  CHECK_THAT(check_kvt_header(h).sentence(), ContainsSubstring("rotation seed without"));
}

}  // namespace
