// SPDX-License-Identifier: Apache-2.0
// Records of a host tier lie where the engines' formulas say.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using kvarts::test::rows;

using int8_rows = row_codec<int8_head>;

// The engines' formulas, as they are published: R bytes a record, t slot, P tokens a page,
// L layers, S slots, H heads of r bytes each.
std::int64_t address(host_layout how, std::int64_t R, std::int64_t t, std::int64_t h,
                     std::int64_t l, std::int64_t P, std::int64_t L, std::int64_t S,
                     std::int64_t H) {
  std::int64_t const p = t / P, o = t % P, r = R;
  switch (how) {
    case host_layout::layer_first: return l * S * R + t * R;
    case host_layout::page_first: return t * L * R + l * R;
    case host_layout::page_first_direct: return p * L * P * R + l * P * R + o * R;
    default: return p * P * L * H * r + h * P * L * r + o * L * r + l * r;
  }
}

TEST_CASE("row records lie where the engines' formulas say") {
  constexpr int L = 5, H = 3, P = 4, pages = 6;
  geometry g = uniform_geometry(L, H, segment_of<int8_rows>(46), segment_of<int8_rows>(80));
  g.page_tokens = P;
  g.alignment = 16;
  for (host_layout const how : host_layouts) {
    g.placement = how;
    CAPTURE(to_string(how));
    bool const by_head = how == host_layout::page_head;
    std::int64_t const R = by_head ? 48 : 144;  // 46 codes and a scale a head, up to 16 bytes
    REQUIRE(tier::record_bytes(g, side::keys, 0) == R);
    for (int l = 0; l < L; ++l) {
      layout const m = make_layout(g, side::keys, l, pages);
      REQUIRE_FALSE(kvarts::check<int8_rows>(m));
      for (int t = 0; t < P * pages; ++t) {
        for (int h = 0; h < H; ++h) {
          std::int64_t const at = address(how, R, t, h, l, P, L, P * pages, H);
          REQUIRE(m.codes.at(t / P, t % P, h) == at + (by_head ? 0 : h * 46));
          REQUIRE(m.scales.at(t / P, t % P, h) == at + (by_head ? 46 : 3 * 46 + h * 2));
        }
      }
    }
  }
}

TEST_CASE("page records are planes of codes and of scales, by head or by token") {
  constexpr int L = 3, H = 2, P = 8, pages = 4;
  geometry g = uniform_geometry(L, H, segment_of<int8_rows>(64), {});
  g.record = record_kind::page;
  g.page_tokens = P;
  g.alignment = 128;
  constexpr std::int64_t R = 1152;  // 8 x 2 x 66 = 1056
  for (host_layout const how :
       {host_layout::layer_first, host_layout::page_first, host_layout::page_first_direct}) {
    g.placement = how;
    CAPTURE(to_string(how));
    for (order const first : {order::head_major, order::token_major}) {
      g.head_order = first;
      bool const by_head = first == order::head_major;
      layout const m = make_layout(g, side::keys, 2, pages);
      for (int p = 0; p < pages; ++p) {
        std::int64_t const at =
            how == host_layout::layer_first ? (2 * pages + p) * R : (p * L + 2) * R;
        for (int o = 0; o < P; ++o) {
          for (int h = 0; h < H; ++h) {
            int const row = by_head ? h * P + o : o * H + h;
            REQUIRE(m.codes.at(p, o, h) == at + row * 64);
            REQUIRE(m.scales.at(p, o, h) == at + P * H * 64 + row * 2);
          }
        }
        CHECK(m.page_padding.at(p, 0, 0) == at + 1056);
        CHECK(m.page_padding.bytes == 96);
      }
    }
  }
}

TEST_CASE("row records are those of make_row_records, byte for byte") {
  auto const seed = test::test_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  constexpr int L = 3, H = 8, D = 128, P = 16, pages = 2;
  geometry g = uniform_geometry(L, H, segment_of<int8_rows>(D), {});
  g.page_tokens = P;
  rows const in = test::normal_rows(random, H, D, P * pages);
  layout const record = make_row_records<int8_rows>(H, D, P * pages);
  std::vector<std::byte> expected(static_cast<std::size_t>(record.size_bytes()));
  encode(view<int8_rows>{expected.data(), record}, in.source(), {0, P * pages});
  std::int32_t const table[] = {0, 1};
  for (host_layout const how :
       {host_layout::layer_first, host_layout::page_first, host_layout::page_first_direct}) {
    CAPTURE(to_string(how));
    g.placement = how;
    std::vector<std::byte> memory(static_cast<std::size_t>(size_bytes(g, side::keys, pages)));
    view<int8_rows> const layer{memory.data(), make_layout(g, side::keys, 1, pages), {table, 2}};
    encode(layer, in.source(), {0, P * pages});
    for (int t = 0; t < P * pages; ++t) {
      auto const at = address(how, 1152, t, 0, 1, P, L, P * pages, H);
      REQUIRE(std::memcmp(memory.data() + at, expected.data() + t * 1152, 1152) == 0);
    }
  }
}

TEST_CASE("a head group of a page is one run of codes and one of scales") {
  geometry g = uniform_geometry(2, 8, segment_of<row_codec<midrise<4>>>(128), {});
  g.record = record_kind::page;
  g.page_tokens = 64;
  layout const whole = make_layout(g, side::keys, 1, 3);
  geometry half = g;
  half.heads = 4;
  layout const slice = make_layout(half, side::keys, 0, 1);
  CHECK(whole.codes.at(2, 0, 4) + slice.scales.offset == whole.scales.at(2, 0, 0));
  CHECK(whole.codes.at(2, 63, 7) - whole.codes.at(2, 0, 4) == slice.codes.at(0, 63, 3));
  CHECK(whole.scales.at(2, 63, 7) - whole.scales.at(2, 0, 4) ==
        slice.scales.at(0, 63, 3) - slice.scales.offset);
}

TEST_CASE("offsets have 64 bits") {
  geometry g = uniform_geometry(61, 8, segment_of<int8_rows>(128), {});
  g.page_tokens = 64;
  constexpr std::int64_t pages = 100'000;
  for (host_layout const how : host_layouts) {
    g.placement = how;
    std::int64_t const bytes = how == host_layout::page_head ? 8 * 256 : 1152;
    layout const m = make_layout(g, side::keys, 60, pages);
    CHECK(m.size_bytes() == size_bytes(g, side::keys, pages));
    CHECK(m.size_bytes() == pages * 64 * 61 * bytes);
  }
}

}  // namespace
