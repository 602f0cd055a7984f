// SPDX-License-Identifier: Apache-2.0
// Facts of INT8 per head that a rewrite could get wrong, each with numbers that show it.
#include "support/catch.hpp"
#include "support/group_data.hpp"
#include "support/quantizer_oracle.hpp"

#include <kvarts/decode.hpp>
#include <kvarts/encode.hpp>
#include <kvarts/make_layout.hpp>
#include <kvarts/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using codec = row_codec<int8_head>;

/// Codes as signed integers, and the scale, of one row.
struct coded_row {
  std::vector<int> q;
  float scale = 0.0f;
};

coded_row quantize(numbers const& x) {
  std::vector<std::uint8_t> codes(x.size());
  auto const p = int8_head::quantize(x.data(), static_cast<int>(x.size()), codes.data());
  coded_row row{{}, p.scale};
  for (std::uint8_t const u : codes) row.q.push_back(u - 128);
  return row;
}

TEST_CASE("INT8 ties go to even, not away from zero") {
  auto const row = quantize({127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -124.5f});
  CHECK(row.scale == 1.0f);
  CHECK(row.q == std::vector<int>{127, 0, 2, 2, 0, -2, -2, 126, -124});
}

TEST_CASE("INT8 divides: the product with a reciprocal gives other codes") {
  struct example {
    float amax, x;
    int q, by_reciprocal;
  };
  for (auto const& e :
       {example{1.609375f, 0.08251953125f, 6, 7}, example{1.734375f, 0.1982421875f, 14, 15},
        example{1.859375f, 0.03662109375f, 2, 3}, example{1.890625f, 0.0223388671875f, 2, 1}}) {
    CAPTURE(e.amax, e.x);
    auto const row = quantize({e.x, e.amax, -e.x});
    CHECK(row.q[0] == e.q);
    CHECK(row.q[2] == -e.q);
    CHECK(std::rint(product(e.x, quotient(1.0f, row.scale))) ==
          static_cast<float>(e.by_reciprocal));
  }
}

TEST_CASE("INT8 codes come from the stored scale, not from amax / 127") {
  // 1.9921875 / 127 = 0.0156865 is stored as 0.0157471: 1.9375 is 123.04 of these, 123.51 of those.
  auto const row = quantize({1.9921875f, 1.9375f});
  CHECK(row.scale == 0x1.02p-6f);
  CHECK(row.q == std::vector<int>{127, 123});
}

TEST_CASE("INT8 rows of zeros and of tiny numbers have the scale of 2^-112") {
  float const floor_scale = bf16(quotient(0x1p-112f, 127.0f));
  for (float const x : {0.0f, -0.0f, 0x1p-140f, -0x1p-126f, 0x1p-120f}) {
    CAPTURE(x);
    auto const row = quantize({x, x, 0.0f});
    CHECK(row.scale == floor_scale);
    CHECK(row.q == std::vector<int>{0, 0, 0});
  }
  CHECK(quantize({0x1p-112f, 0x1p-113f}).q == std::vector<int>{127, 64});
}

/// One row of one head as row records; `decode` to a type.
template <class To, class From>
std::vector<To> round_trip(std::vector<From> const& x) {
  auto const n = static_cast<int>(x.size());
  layout const m = make_row_records<codec>(1, n, 1, 16);
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
  view<codec> const v{bytes.data(), m, {}};
  REQUIRE(encode(v, make_tensor(x.data(), 1, n, 1), {0, 1}).code == status::ok);
  std::vector<To> back(x.size());
  REQUIRE(decode(v, make_tensor(back.data(), 1, n, 1), {0, 1}) == status::ok);
  return back;
}

TEST_CASE("INT8 of the largest bf16 decodes to a finite number in every type") {
  auto const largest = bfloat16::from_bits(0x7F7F);
  std::vector<bfloat16> const x{largest, bfloat16(-float{largest}), bfloat16(1e30f)};
  auto const wide = round_trip<bfloat16>(x);
  CHECK(wide[0].bits == 0x7F7F);
  CHECK(wide[1].bits == 0xFF7F);
  auto const narrow = round_trip<half>(x);
  CHECK(narrow[0].bits == 0x7BFF);
  CHECK(narrow[1].bits == 0xFBFF);
  auto const unrounded = round_trip<float>(x);
  CHECK(std::isfinite(unrounded[0]));
  CHECK(unrounded[0] > float{largest});  // 127 times the scale, which was rounded up
  CHECK(unrounded[0] == -unrounded[1]);
  CHECK(bfloat16(unrounded[0]).bits == 0x7F80);  // the published codec's infinity
}

TEST_CASE("INT8 decodes to code times scale, rounded only in a 16-bit target") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  auto const x = draw_group(random, group_data::normal, 80);
  auto const row = quantize(x);
  auto const exact = round_trip<float>(x);
  auto const rounded_once = round_trip<bfloat16>(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    float const expected = static_cast<float>(double{row.scale} * row.q[i]);
    CHECK(exact[i] == expected);
    CHECK(float{rounded_once[i]} == bf16(expected));
    CHECK(std::fabs(exact[i] - x[i]) <=
          0.5f * row.scale * (1.0f + 0x1p-20f) + 0x1p-9f * std::fabs(x[i]));
  }
}

TEST_CASE("INT8 of fp16 rows uses the same formulas and a bf16 scale") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (group_data const kind :
       {group_data::normal, group_data::large, group_data::tiny, group_data::outlier}) {
    std::vector<half> stored;
    for (float const x : draw_group(random, kind, 128)) stored.push_back(saturate<half>(x));
    numbers const x(stored.begin(), stored.end());
    auto const expected = int8_oracle(x);
    auto const back = round_trip<float>(stored);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(back[i] == expected.back(i));
  }
}

TEST_CASE("an INT8 record of 8 heads of 128 is 1152 bytes: codes, scales, zeros") {
  constexpr int heads = 8, head_dim = 128, tokens = 3;
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  auto const x = draw_group(random, group_data::heavy_tailed, heads * head_dim * tokens);
  layout const m = make_row_records<codec>(heads, head_dim, tokens);
  REQUIRE(m.size_bytes() == tokens * 1152);
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()), std::byte{0xFF});
  REQUIRE(encode(view<codec>{bytes.data(), m, {}}, make_tensor(x.data(), heads, head_dim, tokens),
                 {0, tokens})
              .code == status::ok);

  for (int t = 0; t < tokens; ++t) {
    std::byte const* const record = bytes.data() + t * 1152;
    for (int h = 0; h < heads; ++h) {
      CAPTURE(t, h);
      auto const first = x.begin() + (t * heads + h) * head_dim;
      auto const row = quantize(numbers(first, first + head_dim));
      for (int d = 0; d < head_dim; ++d) {
        auto const stored = static_cast<std::int8_t>(record[h * head_dim + d]);
        CHECK(stored == row.q[static_cast<std::size_t>(d)]);
      }
      auto const low = std::to_integer<unsigned>(record[1024 + 2 * h]);
      auto const high = std::to_integer<unsigned>(record[1024 + 2 * h + 1]);
      CHECK((low | high << 8) == bfloat16(row.scale).bits);
    }
    CHECK(std::all_of(record + 1040, record + 1152, [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST_CASE("padding of INT8 records follows the alignment") {
  struct example {
    int heads, head_dim, alignment, bytes;
  };
  for (auto const& e :
       {example{3, 64, 16, 208}, example{1, 80, 128, 128}, example{2, 32, 16, 80},
        example{1, 46, 1, 48}, example{8, 128, 4096, 4096}, example{1, 126, 128, 128}}) {
    CAPTURE(e.heads, e.head_dim, e.alignment);
    CHECK(make_row_records<codec>(e.heads, e.head_dim, 5, e.alignment).size_bytes() == 5 * e.bytes);
  }
}

}  // namespace
