// SPDX-License-Identifier: Apache-2.0
// Sizes of a host tier: the published figures, to the byte.
#include "support/catch.hpp"
#include "support/random.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <utility>

namespace {

using namespace kvarts;
using namespace kvarts::tier;

using int8_rows = row_codec<int8_head>;
using plain = identity<bfloat16>;
template <int Bits, axis Along>
using grouped = codec<symmetric<Bits, range::narrow>, Along, 32>;

/// K and V alike, 8 heads of 128: Qwen3-8B has 36 layers of these.
template <codec_type C>
constexpr geometry qwen3(int alignment, int heads = 8) {
  geometry g = uniform_geometry(36, heads, segment_of<C>(128), segment_of<C>(128));
  g.alignment = alignment;
  return g;
}

constexpr std::int64_t budget = 8'000'000'000;

constexpr capacity by_sglang(geometry const& g) {
  return capacity_for(g, budget, capacity_rule::sglang);
}

// All of it is known to the compiler.
static_assert(bytes_per_token(qwen3<plain>(128)) == 147'456);
static_assert(by_sglang(qwen3<plain>(128)) == capacity{54'254, 54'254, 8'000'077'824});
static_assert(record_bytes(qwen3<int8_rows>(128), side::keys, 0) == 1152);
static_assert(bytes_per_token(qwen3<int8_rows>(128)) == 82'944);
static_assert(by_sglang(qwen3<int8_rows>(128)).tokens == 96'451);
static_assert(record_bytes(qwen3<int8_rows>(16), side::keys, 0) == 1040);
static_assert(bytes_per_token(qwen3<int8_rows>(16)) == 74'880);
static_assert(by_sglang(qwen3<int8_rows>(16)).tokens == 106'838);
static_assert(54'254 * bytes_per_token(qwen3<int8_rows>(128)) == 4'500'043'776);
static_assert(4'500'043'776.0 / 8'000'077'824.0 == 0.5625);
static_assert(record_bytes(qwen3<grouped<4, axis::channel>>(128), side::keys, 0) == 640);
static_assert(record_bytes(qwen3<grouped<3, axis::channel>>(16), side::values, 35) == 448);

TEST_CASE("a strict tier is within its budget, SGLang's rule one page above") {
  auto const seed = test::test_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  for (int i = 0; i < 200; ++i) {
    geometry g = qwen3<int8_rows>(1 << random.between(0, 12), random.between(1, 9));
    g.page_tokens = random.between(1, 70);
    auto const bytes = static_cast<std::int64_t>(random.bits() >> random.between(4, 60));
    CAPTURE(g.page_tokens, g.alignment, g.heads, bytes);
    capacity const strict = capacity_for(g, bytes);
    CHECK(strict.bytes <= bytes);
    CHECK(strict.bytes + bytes_per_page(g) > bytes);
    CHECK(strict.tokens == strict.pages * g.page_tokens);
    CHECK(bytes_per_page(g) == g.page_tokens * bytes_per_token(g));
    capacity const sglang = capacity_for(g, bytes, capacity_rule::sglang);
    CHECK(sglang.pages == bytes / bytes_per_token(g) / g.page_tokens + 1);
    CHECK(sglang.bytes == strict.bytes + bytes_per_page(g));
  }
}

TEST_CASE("rows of few heads pay for their alignment, pages do not") {
  for (auto const& [heads, ratio] :
       {std::pair{8, 16.0 / 9}, {4, 1.6}, {2, 4.0 / 3}, {1, 1.0}}) {  // 1.78, 1.60, 1.33, 1.00
    CAPTURE(heads);
    geometry g = qwen3<int8_rows>(128, heads);
    auto const plain_bytes = static_cast<double>(bytes_per_token(qwen3<plain>(128, heads)));
    CHECK(plain_bytes / static_cast<double>(bytes_per_token(g)) == ratio);
    g.record = record_kind::page;
    g.page_tokens = 64;
    CHECK(64 * plain_bytes / static_cast<double>(bytes_per_page(g)) ==
          Catch::Approx(1.97).epsilon(.001));
  }
}

TEST_CASE("a page record is padded once") {
  geometry g = uniform_geometry(1, 3, segment_of<int8_rows>(46), {});
  g.record = record_kind::page;
  g.page_tokens = 10;
  g.alignment = 4096;
  CHECK(bytes_per_page(g) == 4096);      // 10 x 3 x (46 + 2) = 1440
  CHECK(bytes_per_token(g) == 410);      // 409.6
  g.placement = host_layout::page_head;  // 480 a head
  g.alignment = 128;
  CHECK(record_bytes(g, side::keys, 0) == 512);
  CHECK(bytes_per_page(g) == 3 * 512);
  CHECK(capacity_for(g, 3 * 3 * 512 + 1) == capacity{3, 30, 3 * 3 * 512});
}

TEST_CASE("records of heads are aligned each") {
  geometry g = qwen3<int8_rows>(8);
  CHECK(bytes_per_token(g) == 72 * 1040);
  g.placement = host_layout::page_head;
  CHECK(record_bytes(g, side::keys, 0) == 136);
  CHECK(bytes_per_token(g) == 72 * 8 * 136);
}

TEST_CASE("rows of MLA: a coded latent and 16-bit RoPE channels") {
  constexpr segment rope = segment_of<plain>(64);
  auto const of = [](row_segments const& rows) {
    geometry g = uniform_geometry(61, 1, rows, {});
    g.alignment = 8;
    return bytes_per_token(g);
  };
  CHECK(of({segment_of<plain>(512), rope}) == 61 * 1152);
  CHECK(of({segment_of<int8_rows>(512), rope}) == 61 * 648);
  CHECK(of({segment_of<row_codec<midrise<3>>>(512), rope}) == 61 * 328);
}

TEST_CASE("layers and sides count with their own codecs") {
  geometry g = uniform_geometry(5, 2, segment_of<row_codec<midrise<3>>>(128),
                                segment_of<row_codec<midrise<2>>>(64));
  g.alignment = 2;
  g.kinds[1] = {segment_of<plain>(128), segment_of<plain>(64)};
  g.kind_of_layer[0] = g.kind_of_layer[3] = 1;
  std::int64_t const coded_keys = 2 * (48 + 2);
  std::int64_t const coded_values = 2 * (16 + 2);
  CHECK(bytes_per_page(g, side::keys) == 3 * coded_keys + 2 * 512);
  CHECK(bytes_per_page(g, side::values) == 3 * coded_values + 2 * 256);
  CHECK(bytes_per_token(g) == 3 * (coded_keys + coded_values) + 2 * 768);
}

TEST_CASE("heads under tensor parallelism") {
  for (auto const& [ranks, heads] : {std::pair{1, 8}, {2, 4}, {4, 2}, {8, 1}, {16, 1}, {64, 1}}) {
    CHECK_FALSE(check_ranks(8, ranks));
    CHECK(local_heads(8, ranks) == heads);
  }
}

}  // namespace
