// SPDX-License-Identifier: Apache-2.0
// Codecs work on a host tier's memory through views: what comes back is what a plain contiguous
// copy gives, for every host layout, kind of record and order of heads.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using kvarts::test::rows;

using int8_rows = row_codec<int8_head>;
using plain = identity<bfloat16>;
using by_channel = codec<symmetric<3, range::narrow>, axis::channel, 32>;
using by_token = codec<symmetric<3, range::narrow>, axis::token, 32>;

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
  for (host_layout const how : host_layouts) {
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

}  // namespace
