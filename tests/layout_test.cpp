// SPDX-License-Identifier: Apache-2.0
// Sizes and places of the shipped layouts, to the byte.
#include "support/catch.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace {

using namespace kvarts;

template <int Bits, range Range, axis Along, int Group = dynamic_group>
using grouped = codec<symmetric<Bits, Range>, Along, Group>;
using int8_rows = row_codec<int8_head>;

// Layouts are values of the compiler where the numbers are known.
constexpr layout record = plan_row_records<int8_rows>(8, 128, 4096, 128);
static_assert(validate<int8_rows>(record) == status::ok);
static_assert(record.codes.tile_stride == 1152 && record.codes.bytes == 128);
static_assert(record.scales.offset == 1024 && record.scales.bytes == 2);
static_assert(record.tile_padding.offset == 1040 && record.tile_padding.bytes == 112);
static_assert(record.size_bytes() == 4096 * 1152);
static_assert(plan_row_records<int8_rows>(8, 128, 1, 1).size_bytes() == 1040);
static_assert(plan_row_records<int8_rows>(1, 46, 3, 4).size_bytes() == 3 * 48);

/// Bytes of one tile of 32 tokens x 128 channels, parameters included.
template <codec_type C>
constexpr std::int64_t tile_size() {
  layout const m = plan_head_tiles<C>(1, 128, 32);
  static_assert(validate<C>(plan_head_tiles<C>(1, 128, 32)) == status::ok);
  return m.size_bytes();
}

// InnerQ's tiles: 3-bit keys, 3-bit values, 2-bit hybrid and 2-bit values.
static_assert(tile_size<grouped<3, range::narrow, axis::channel, 32>>() == 1792);
static_assert(tile_size<grouped<3, range::narrow, axis::token, 32>>() == 1792);
static_assert(tile_size<codec<hybrid<2, range::narrow>, axis::token, 32>>() == 1536);
static_assert(tile_size<grouped<2, range::narrow, axis::token, 32>>() == 1280);

TEST_CASE("layouts are trivially copyable") {
  STATIC_REQUIRE(std::is_trivially_copyable_v<layout>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<plane>);
}

TEST_CASE("HiQCache's record: codes of all heads, then their scales, then zeros") {
  for (auto const& [alignment, size] : {std::pair{1, 1040},
                                        {2, 1040},
                                        {16, 1040},
                                        {64, 1088},
                                        {128, 1152},
                                        {512, 1536},
                                        {4096, 4096}}) {
    CAPTURE(alignment);
    layout const m = make_row_records<int8_rows>(8, 128, 7, alignment);
    CHECK(m.size_bytes() == 7 * size);
    CHECK(m.codes.at(0, 3, 5) == 3 * size + 5 * 128);
    CHECK(m.scales.at(0, 3, 5) == 3 * size + 1024 + 5 * 2);
    CHECK(m.tile_padding.bytes == size - 1040);
    CHECK(m.effective_bits() == 8.125);
  }
}

TEST_CASE("records of group codecs hold scales of all heads, then zero-points of all heads") {
  using kivi_values = codec<affine<2>, axis::channel>;
  layout const m = make_row_records<kivi_values>(3, 100, 5, 64, 32);
  // 100 codes of 2 bits: 25 bytes; 4 groups (32, 32, 32, 4): 8 bytes of scales, 8 of zero-points.
  CHECK(m.codes.bytes == 25);
  CHECK(m.codes.at(0, 2, 1) == 2 * 128 + 25);
  CHECK(m.scales.at(0, 2, 1) == 2 * 128 + 75 + 8);
  CHECK(m.zeros.at(0, 2, 1) == 2 * 128 + 75 + 24 + 8);
  CHECK(m.tile_padding.at(0, 2, 0) == 2 * 128 + 123);
  CHECK(m.tile_padding.bytes == 5);
}

TEST_CASE("a tile of groups is codes, scales, zero-points, padding") {
  using C = codec<hybrid<2, range::wide>, axis::token>;
  layout const m =
      make_head_tiles<C>(2, 46, 65, {.tile_tokens = 32, .group = 16, .alignment = 128});
  // 32 x 46 codes: 368 bytes; 2 x 46 groups: 184 and 184; up to 768.
  CHECK(m.tokens == 96);
  CHECK(m.codes.at(0, 2, 1) == (3 + 2) * 768);
  CHECK(m.scales.at(0, 2, 1) == 5 * 768 + 368);
  CHECK(m.zeros.at(0, 2, 1) == 5 * 768 + 552);
  CHECK(m.tile_padding.at(0, 2, 1) == 5 * 768 + 736);
  CHECK(m.tile_padding.bytes == 32);
  CHECK(m.size_bytes() == 6 * 768);
}

TEST_CASE("scales of row codecs lie behind all code tiles of a page") {
  using C = row_codec<midrise<4>>;
  layout const m = make_pages<C>(2, 96, 3, 64, {.tile_tokens = 32, .alignment = 128});
  // A page: 2 heads x 2 tiles of 1536 bytes, then 2 heads x 64 scales: 6144 + 256.
  CHECK(m.codes.at(1, 1, 1) == 6400 + 3 * 1536);
  CHECK(m.scales.at(1, 1, 1) == 6400 + 6144 + 128 + 64);
  CHECK(m.page_padding.bytes == 0);
  CHECK(m.size_bytes() == 3 * 6400);
  CHECK(m.codes.at(0, 1, 0) % 128 == 0);
}

TEST_CASE("pages of the identity codec have no parameters") {
  layout const m = make_pages<identity<half>>(3, 100, 2, 16, {.tile_tokens = 16, .alignment = 256});
  // 16 x 100 x 2 = 3200 bytes, up to 3328 a head.
  CHECK(m.codes.at(1, 0, 2) == 3 * 3328 + 2 * 3328);
  CHECK(m.scales.bytes == 0);
  CHECK(m.tile_padding.bytes == 128);
  CHECK(m.size_bytes() == 2 * 3 * 3328);
  CHECK(m.effective_bits() == 16.0);
}

TEST_CASE("effective bits of the presets at D = 128") {
  std::map<std::string, double> const mean{{"fp16", 16.0},
                                           {"bf16", 16.0},
                                           {"int8", 8.125},
                                           {"int4", 4.5},
                                           {"innerq_base", 3.5},
                                           {"innerq_hybrid", 3.25},
                                           {"innerq_small", 3.0},
                                           {"innerq_base_wide", 3.5},
                                           {"innerq_hybrid_wide", 3.25},
                                           {"innerq_small_wide", 3.0},
                                           {"innerq_base_searched", 3.5},
                                           {"innerq_small_searched", 3.0},
                                           {"kivi", 3.0},
                                           {"kivi_sink", 3.0},
                                           {"k8v8", 8.125},
                                           {"k4v4", 4.125},
                                           {"k4v3", 3.625},
                                           {"k4v2", 3.125},
                                           {"k3v3", 3.125},
                                           {"k3v2", 2.625},
                                           {"k2v2", 2.125},
                                           {"turboquant", 3.75},
                                           {"turboquant_calibrated", 3.625}};
  for_each_preset([&](auto const& preset) {
    using S = std::remove_cvref_t<decltype(preset)>;
    CAPTURE(std::string(preset.name));
    auto const k = make_head_tiles<typename S::key_codec>(8, 128, 4096).effective_bits();
    auto const v = make_head_tiles<typename S::value_codec>(8, 128, 4096).effective_bits();
    auto const at = mean.find(std::string(preset.name));
    REQUIRE(at != mean.end());
    CHECK((k + v) / 2.0 == at->second);
  });
}

TEST_CASE("a partial last group along channels has parameters of its own") {
  using C = grouped<4, range::wide, axis::channel>;
  CHECK(make_row_records<C>(1, 96, 1, 1, 128).scales.bytes == 2);
  CHECK(make_row_records<C>(1, 96, 1, 1, 64).scales.bytes == 4);
  CHECK(make_row_records<C>(1, 46, 1, 1, 16).scales.bytes == 6);
  CHECK(make_row_records<C>(1, 576, 1, 1, 128).scales.bytes == 10);
}

TEST_CASE("offsets have 64 bits") {
  layout const m = make_pages<int8_rows>(8, 256, 65536, 16, {.tile_tokens = 16});
  std::int64_t const page = 8 * 16 * 256 + 8 * 16 * 2;
  CHECK(m.codes.at(65535, 0, 7) == 65535 * page + 7 * 4096);
  CHECK(m.size_bytes() == 65536 * page);
  CHECK(65536 * 8 * m.codes.bytes == 2147483648);
  CHECK(65536 * 8 * m.codes.bytes + 65536 * 8 * m.scales.bytes == m.size_bytes());

  // A plain pool of 2^31 bytes, as engines have it: [65536 blocks, 16 tokens, 8 heads, 256] of a
  // byte would be; two bytes an element make it 2^32.
  auto const plain = make_tensor_layout(dtype::f16, 8, 256, 65536LL * 16, {2048, 256, 32768}, 16);
  CHECK(plain.size_bytes() == 4294967296);
  CHECK(plain.codes.at(65535, 15, 7) == 4294967296 - 512);

  layout const most = make_row_records<int8_rows>(8, 1024, std::int64_t{1} << 31, 4096);
  CHECK(most.size_bytes() == (std::int64_t{1} << 31) * 12288);
}

TEST_CASE("room for nothing is a layout of no bytes") {
  for_each_codec([](auto tag) {
    using C = typename decltype(tag)::type;
    CAPTURE(std::string(std::string_view(C::name())));
    CHECK(make_head_tiles<C>(2, 46, 0).size_bytes() == 0);
    CHECK(make_pages<C>(2, 46, 0, 64).size_bytes() == 0);
    if constexpr (C::grouped_along != axis::token) {
      CHECK(make_row_records<C>(2, 46, 0).size_bytes() == 0);
    }
  });
}

TEST_CASE("usual tiles hold whole groups and fit their pages") {
  using by_token = codec<affine<2>, axis::token>;
  CHECK(make_head_tiles<by_token>(1, 64, 100, {.group = 48}).tile_tokens == 48);
  CHECK(make_head_tiles<by_token>(1, 64, 100, {.group = 16}).tile_tokens == 32);
  CHECK(make_head_tiles<by_token>(1, 64, 100).group == 32);
  CHECK(make_pages<by_token>(1, 64, 2, 16, {.group = 16}).tile_tokens == 16);
  CHECK(make_pages<int8_rows>(1, 64, 2, 48).tile_tokens == 16);
  CHECK(make_pages<int8_rows>(1, 64, 2, 1).tile_tokens == 1);
}

}  // namespace
