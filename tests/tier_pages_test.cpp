// SPDX-License-Identifier: Apache-2.0
// Pages and tokens that move by pairs of indices get the bytes that `encode` and `decode` give them
// one by one, for every tier and pool, on any number of threads, and nothing else is touched.
#include "support/catch.hpp"
#include "support/device_pool.hpp"
#include "support/index_lists.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using namespace kvarts::test;

using int8_rows = row_codec<int8_head>;
using rows3 = row_codec<midrise<3>>;
using by_token = codec<symmetric<3, range::narrow>, axis::token, 8>;
using plain = identity<bfloat16>;

constexpr int page_tokens = 16;
constexpr int tier_pages = 9;
constexpr std::int64_t pool_slots = 7 * page_tokens;

/// A center, a norm and a rotation, as keys of k8v8 have them.
transform calibrated(random_source& random, int heads, int head_dim) {
  transform t{heads, head_dim, {}, {}, {1, 1}};
  for (int i = 0; i < heads * head_dim; ++i) {
    t.center.push_back(static_cast<float>(random.normal()));
    t.norm.push_back(static_cast<float>(0.5 + random.uniform()));
  }
  return t;
}

/// The tier's memory of one layer of one side.
template <class C>
struct tier_layer {
  layout map;
  std::vector<std::byte> bytes;

  tier_layer(geometry const& g, int layer)
      : map(make_layout(g, side::keys, layer, tier_pages)),
        bytes(static_cast<std::size_t>(size_bytes(g, side::keys, tier_pages)), std::byte{0xA5}) {}

  view<C> codes() { return {bytes.data(), map, {}}; }

  /// One unit, by the plain functions.
  void encode_one(std::int64_t unit, std::int64_t tokens, rows const& in, transform_view const& t) {
    auto const page = static_cast<std::int32_t>(unit * tokens / page_tokens);
    std::int64_t const first = unit * tokens % page_tokens;
    view<C> const v{bytes.data(), map, {&page, 1}};
    REQUIRE(encode(v, in.source(), {first, first + tokens}, t).code == status::ok);
  }
  rows decode_one(std::int64_t unit, std::int64_t tokens, transform_view const& t) {
    auto const page = static_cast<std::int32_t>(unit * tokens / page_tokens);
    std::int64_t const first = unit * tokens % page_tokens;
    view<C> const v{bytes.data(), map, {&page, 1}};
    rows out(map.heads, map.head_dim, tokens);
    REQUIRE(decode(v, out.target(), {first, first + tokens}, t) == status::ok);
    return out;
  }
};

/// Out by `encode_pages` and back by `decode_pages` to other places, each against one by one.
template <class C>
void check_moves_of(geometry const& g, pool_shape const& shape, std::int64_t unit, int threads,
                    random_source& random) {
  int const head_dim = g.rows(side::keys, 1)[0].head_dim;
  transform const keys = calibrated(random, g.heads, head_dim);
  transform_view const t = C::plain ? transform_view{} : keys.view();
  device_pool pool(shape, g.heads, head_dim, pool_slots);
  pool.fill(random);
  tier_layer<C> found(g, 1), expected(g, 1);
  std::int64_t const host = tier_pages * page_tokens / unit;
  std::int64_t const device = pool_slots / unit;
  auto const out = index_lists::random(random, host, device);
  REQUIRE(encode_pages(found.codes(), pool.source(), {out.pairs(), unit, threads}, t).code ==
          status::ok);
  for (std::size_t i = 0; i < out.dst.size(); ++i) {
    expected.encode_one(out.dst[i], unit, pool.gathered(out.src[i] * unit, unit), t);
  }
  CHECK(found.bytes == expected.bytes);

  device_pool back(shape, g.heads, head_dim, pool_slots), plain_back = back;
  auto const in = index_lists::chosen(random, device, out.dst);
  REQUIRE(decode_pages(found.codes(), back.target(), {in.narrow(), unit, threads}, t) ==
          status::ok);
  for (std::size_t i = 0; i < in.dst.size(); ++i) {
    plain_back.scatter(expected.decode_one(in.src[i], unit, t), in.dst[i] * unit);
  }
  CHECK(back.bytes == plain_back.bytes);
}

/// Three layers, of which the middle one moves, in each order of records.
template <class C, class F>
void for_each_tier(int heads, int head_dim, F const& f) {
  for (record_kind const record : {record_kind::row, record_kind::page}) {
    if (record == record_kind::row && C::grouped_along == axis::token) continue;
    for (host_layout const how : host_layouts) {
      geometry g = uniform_geometry(3, heads, segment_of<C>(head_dim), {});
      g.page_tokens = page_tokens;
      g.record = record;
      g.placement = how;
      g.alignment = 128;
      CAPTURE(to_string(how), record == record_kind::page);
      f(g);
    }
  }
}

TEMPLATE_TEST_CASE("moves give the bytes of plain encodes and decodes", "", int8_rows, rows3,
                   by_token, plain) {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for_each_tier<TestType>(3, 46, [&](geometry const& g) {
    for (pool_shape const& shape : pool_shapes()) {
      for (int const unit : {1, 8, 16}) {
        if (shape.page_tokens == 8 && unit == 16) continue;
        if (TestType::grouped_along == axis::token && unit == 1) continue;
        int const threads = random.between(1, 4);
        CAPTURE(shape.name, unit, threads);
        check_moves_of<TestType>(g, shape, unit, threads, random);
      }
    }
  });
}

TEST_CASE("no pairs move nothing") {
  random_source random(1);
  geometry g = uniform_geometry(2, 2, segment_of<int8_rows>(64), {});
  g.page_tokens = page_tokens;
  tier_layer<int8_rows> memory(g, 1);
  auto const before = memory.bytes;
  device_pool pool(pool_shapes()[0], 2, 64, pool_slots);
  CHECK(encode_pages(memory.codes(), pool.source(), {{}, page_tokens, 4}).code == status::ok);
  CHECK(decode_pages(memory.codes(), pool.target(), {{}, page_tokens, 4}) == status::ok);
  CHECK(memory.bytes == before);
}

TEST_CASE("numbers that are not finite are counted once, on any number of threads") {
  random_source random(1);
  geometry g = uniform_geometry(2, 2, segment_of<int8_rows>(64), {});
  g.page_tokens = page_tokens;
  tier_layer<int8_rows> memory(g, 1);
  device_pool pool(pool_shapes()[0], 2, 64, pool_slots);
  pool.fill(random);
  for (int slot : {3, 20, 21, 90}) {
    store_unaligned(pool.row(slot, 1) + 10, std::uint16_t{0x7C00});  // an infinity
    store_unaligned(pool.row(slot, 0) + 12, std::uint16_t{0x7E01});  // a NaN
  }
  std::vector<std::int64_t> const dst{4, 5, 6, 7}, src{0, 1, 2, 1};
  for (int const threads : {1, 2, 3, 256}) {
    auto const r = encode_pages(memory.codes(), pool.source(),
                                {{dst.data(), src.data(), 4}, page_tokens, threads});
    CHECK(r.code == status::ok);
    CHECK(r.nonfinite == 2 + 4 + 0 + 4);
  }
}

}  // namespace
