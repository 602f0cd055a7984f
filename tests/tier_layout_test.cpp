// SPDX-License-Identifier: Apache-2.0
// Records lie where the host layouts say, and codecs work on them through views: what comes back is
// what a plain contiguous copy gives.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using kvarts::test::rows;

using int8_rows = row_codec<int8_head>;
using plain = identity<bfloat16>;
using by_channel = codec<symmetric<3, range::narrow>, axis::channel, 32>;
using by_token = codec<symmetric<3, range::narrow>, axis::token, 32>;

constexpr host_layout all_layouts[] = {host_layout::layer_first, host_layout::page_first,
                                       host_layout::page_first_direct, host_layout::page_head};

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
  for (host_layout const how : all_layouts) {
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

/// Pages in an order of their own, as a block table has them.
std::vector<std::int32_t> shuffled_pages(test::random_source& random, int pages) {
  std::vector<std::int32_t> table;
  for (int i = 0; i < pages; ++i) table.push_back(i);
  for (int i = pages - 1; i > 0; --i) std::swap(table[i], table[random.between(0, i)]);
  return table;
}

/// The same rows through a contiguous copy: head tiles of the same codec.
template <class C>
rows through_contiguous(rows const& from) {
  layout const m = make_head_tiles<C>(from.heads, from.head_dim, from.tokens);
  std::vector<std::byte> memory(static_cast<std::size_t>(m.size_bytes()));
  view<C> const codes{memory.data(), m};
  REQUIRE(encode(codes, from.source(), {0, from.tokens}).code == status::ok);
  rows back(from.heads, from.head_dim, from.tokens);
  REQUIRE(decode(codes, back.target(), {0, from.tokens}) == status::ok);
  return back;
}

/// The memory of one side of a tier, and the table that leads to its pages.
struct tier_memory {
  geometry g;
  side s;
  std::vector<std::int32_t> table;
  std::vector<std::byte> bytes;

  tier_memory(geometry const& of, side which, std::vector<std::int32_t> pages, std::byte before)
      : g(of),
        s(which),
        table(std::move(pages)),
        bytes(static_cast<std::size_t>(size_bytes(g, s, static_cast<int>(table.size()))), before) {}

  template <class C>
  view<C> layer(int l, int part = 0) {
    auto const pages = static_cast<std::int64_t>(table.size());
    layout const m = make_layout(g, s, l, pages, part);
    REQUIRE_FALSE(kvarts::check<C>(m));
    REQUIRE(m.size_bytes() <= static_cast<std::int64_t>(bytes.size()));
    return {bytes.data(), m, {table.data(), pages}};
  }
};

template <class C>
void require_equal_after_decoding(view<C> from, rows const& plain_copy) {
  rows back(plain_copy.heads, plain_copy.head_dim, plain_copy.tokens);
  REQUIRE(decode(from, back.target(), {0, back.tokens}) == status::ok);
  REQUIRE(std::memcmp(back.values.data(), plain_copy.values.data(),
                      back.values.size() * sizeof(float)) == 0);
}

/// Three layers, the middle one in 16 bits: all of them are written before any is read.
template <class C>
void round_trip(geometry g, int heads, int head_dim, std::int64_t tokens,
                test::random_source& random) {
  g.layers = 3;
  g.heads = heads;
  g.kinds[0] = {{}, segment_of<C>(head_dim)};
  g.kinds[1] = {{}, segment_of<plain>(head_dim)};
  g.kind_of_layer[1] = 1;
  auto const pages = static_cast<int>(ceil_div(tokens, g.page_tokens)) + 2;
  tier_memory memory(g, side::values, shuffled_pages(random, pages), std::byte{0xA5});
  std::vector<rows> in;
  for (int l = 0; l < 3; ++l) in.push_back(test::normal_rows(random, heads, head_dim, tokens));
  token_range const all{0, tokens};
  REQUIRE(encode(memory.layer<C>(0), in[0].source(), all).code == status::ok);
  REQUIRE(encode(memory.layer<plain>(1), in[1].source(), all).code == status::ok);
  REQUIRE(encode(memory.layer<C>(2), in[2].source(), all).code == status::ok);
  require_equal_after_decoding(memory.layer<C>(0), through_contiguous<C>(in[0]));
  require_equal_after_decoding(memory.layer<plain>(1), through_contiguous<plain>(in[1]));
  require_equal_after_decoding(memory.layer<C>(2), through_contiguous<C>(in[2]));
}

/// Calls `f(geometry)` for every host layout and order of heads, of one kind of record.
template <class F>
void for_each_arrangement(record_kind record, int page_tokens, F&& f) {
  geometry g;
  g.record = record;
  g.page_tokens = page_tokens;
  for (host_layout const how : all_layouts) {
    for (order const first : {order::head_major, order::token_major}) {
      for (int const alignment : {8, 16, 128, 4096}) {
        g.placement = how;
        g.head_order = first;
        g.alignment = alignment;
        CAPTURE(to_string(how), first == order::head_major, alignment);
        f(g);
      }
    }
  }
}

TEMPLATE_TEST_CASE("codecs work on every host layout", "", int8_rows, row_codec<midrise<3>>,
                   by_channel, plain) {
  auto const seed = test::test_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  for (record_kind const record : {record_kind::row, record_kind::page}) {
    CAPTURE(record == record_kind::page);
    for_each_arrangement(record, 5, [&](geometry const& g) {
      round_trip<TestType>(g, 3, 46, 17, random);
      round_trip<TestType>(g, 1, 128, 5, random);
    });
  }
}

TEST_CASE("groups along tokens work in page records of every host layout") {
  auto const seed = test::test_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  for_each_arrangement(record_kind::page, 64,
                       [&](geometry const& g) { round_trip<by_token>(g, 2, 46, 64 + 33, random); });
}

/// Every byte of a tier is a code, a parameter or a zero of padding, and belongs to one layer.
template <class C>
void require_filled(geometry const& g, test::random_source& random) {
  constexpr int pages = 3;
  std::int64_t const tokens = pages * g.page_tokens;
  auto const table = shuffled_pages(random, pages);
  tier_memory memory(g, side::keys, table, std::byte{0xA5});
  tier_memory other(g, side::keys, table, std::byte{0x5A});
  for (int l = 0; l < g.layers; ++l) {
    rows const in = test::normal_rows(random, g.heads, g.rows(side::keys, l)[0].head_dim, tokens);
    for (tier_memory* const m : {&memory, &other}) {
      REQUIRE(encode(m->layer<C>(l), in.source(), {0, tokens}).code == status::ok);
    }
  }
  REQUIRE(memory.bytes == other.bytes);
}

TEST_CASE("encoding all layers writes every byte, padding as zeros") {
  auto const seed = test::test_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  for (record_kind const record : {record_kind::row, record_kind::page}) {
    for_each_arrangement(record, 32, [&](geometry g) {
      g.layers = 2;
      g.heads = 3;
      g.kinds[0].keys = segment_of<int8_rows>(46);
      require_filled<int8_rows>(g, random);
      if (record == record_kind::row) return;
      g.kinds[0].keys = segment_of<by_token>(46);
      require_filled<by_token>(g, random);
    });
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
  for (host_layout const how :
       {host_layout::layer_first, host_layout::page_first, host_layout::page_first_direct}) {
    CAPTURE(to_string(how));
    g.placement = how;
    tier_memory memory(g, side::keys, {0, 1}, std::byte{0xA5});
    encode(memory.layer<int8_rows>(1), in.source(), {0, P * pages});
    for (int t = 0; t < P * pages; ++t) {
      auto const at = address(how, 1152, t, 0, 1, P, L, P * pages, H);
      REQUIRE(std::memcmp(memory.bytes.data() + at, expected.data() + t * 1152, 1152) == 0);
    }
  }
}

TEST_CASE("a row of MLA is two segments of one record") {
  auto const seed = test::test_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  constexpr int tokens = 23;
  using latent = row_codec<midrise<3>>;
  for (record_kind const record : {record_kind::row, record_kind::page}) {
    for_each_arrangement(record, 4, [&](geometry g) {
      g.layers = 2;
      g.heads = 1;
      g.kinds[0].keys = {segment_of<latent>(512), segment_of<plain>(64)};
      tier_memory memory(g, side::keys, shuffled_pages(random, 6), std::byte{0xA5});
      rows const latents = test::normal_rows(random, 1, 512, tokens);
      rows const ropes = test::normal_rows(random, 1, 64, tokens);
      for (int l = 0; l < 2; ++l) {
        encode(memory.layer<latent>(l, 0), latents.source(), {0, tokens});
        encode(memory.layer<plain>(l, 1), ropes.source(), {0, tokens});
      }
      for (int l = 0; l < 2; ++l) {
        require_equal_after_decoding(memory.layer<latent>(l, 0),
                                     through_contiguous<latent>(latents));
        require_equal_after_decoding(memory.layer<plain>(l, 1), through_contiguous<plain>(ropes));
      }
    });
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
  for (host_layout const how : all_layouts) {
    g.placement = how;
    std::int64_t const bytes = how == host_layout::page_head ? 8 * 256 : 1152;
    layout const m = make_layout(g, side::keys, 60, pages);
    CHECK(m.size_bytes() == size_bytes(g, side::keys, pages));
    CHECK(m.size_bytes() == pages * 64 * 61 * bytes);
  }
}

}  // namespace
