// SPDX-License-Identifier: Apache-2.0
// A call that is refused has written nothing.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

using by_token = codec<affine<2>, axis::token>;
using int8_rows = row_codec<int8_head>;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

/// Coded memory of 64 tokens, 2 heads, 20 channels; each refusal must leave it alone.
template <class C>
struct fixture {
  layout map = make_head_tiles<C>(2, 20, 64, {.tile_tokens = 32, .group = 16});
  std::vector<std::byte> bytes{static_cast<std::size_t>(map.size_bytes()), std::byte{0xA5}};
  rows x{2, 20, 64, 1.0f};
  rows y{2, 20, 64, 777.0f};

  view<C> coded() { return {bytes.data(), map, {}}; }

  void refused(status code, view<C> dst, rows const& plain, token_range tokens,
               transform_view const& t = {}) {
    CAPTURE(tokens.begin, tokens.end);
    auto const result = encode(dst, plain.source(), tokens, t);
    CHECK(to_string(result.code) == std::string(to_string(code)));
    CHECK(bytes == std::vector<std::byte>(bytes.size(), std::byte{0xA5}));
    if (code == status::partial_group) return;  // readers may begin anywhere
    rows out(plain.heads, plain.head_dim, plain.tokens, 777.0f);
    CHECK(to_string(decode(dst, out.target(), tokens, t)) == std::string(to_string(code)));
    CHECK(out.values == rows(plain.heads, plain.head_dim, plain.tokens, 777.0f).values);
  }
};

TEST_CASE("ranges outside the room, backwards, or larger than the source") {
  fixture<int8_rows> f;
  for (token_range const r : {token_range{-1, 3},
                              {-5, -2},
                              {5, 3},
                              {0, 65},
                              {64, 65},
                              {63, most},
                              {most - 1, most},
                              {-most, most},
                              {0, most}}) {
    f.refused(status::bad_tokens, f.coded(), f.x, r);
  }
  f.refused(status::bad_tokens, f.coded(), rows(2, 20, 10), {0, 11});
}

TEST_CASE("groups of tokens begin where a group begins") {
  fixture<by_token> f;
  f.refused(status::partial_group, f.coded(), f.x, {1, 17});
  f.refused(status::partial_group, f.coded(), f.x, {24, 25});
  f.refused(status::partial_group, f.coded(), f.x, {15, 15});
}

TEST_CASE("a source of another shape") {
  fixture<int8_rows> f;
  f.refused(status::bad_head_dim, f.coded(), rows(2, 21, 64), {0, 64});
  f.refused(status::bad_head_dim, f.coded(), rows(2, 19, 64), {0, 64});
  f.refused(status::bad_heads, f.coded(), rows(3, 20, 64), {0, 64});
  f.refused(status::bad_heads, f.coded(), rows(1, 20, 64), {0, 64});
}

TEST_CASE("transforms that no row can pass through") {
  fixture<int8_rows> f;
  std::vector<float> good(40, 1.0f);
  for (float const bad : {0.0f, -0.0f, -1.0f, std::nanf(""), INFINITY, -INFINITY}) {
    CAPTURE(bad);
    auto norm = good;
    norm[39] = bad;
    f.refused(status::bad_transform, f.coded(), f.x, {0, 64}, {nullptr, norm.data(), 20, {}});
    if (std::isfinite(bad)) continue;
    f.refused(status::bad_transform, f.coded(), f.x, {0, 64}, {norm.data(), nullptr, 20, {}});
  }
  f.refused(status::bad_transform, f.coded(), f.x, {0, 64}, {nullptr, nullptr, 0, {-1, 1}});
  f.refused(status::bad_transform, f.coded(), f.x, {0, 64}, {nullptr, nullptr, 0, {5, 1}});
}

TEST_CASE("pages without a table, beyond it, or outside the pool") {
  fixture<int8_rows> f;
  f.map = make_pages<int8_rows>(2, 20, 4, 16, {.tile_tokens = 16});
  f.bytes.assign(static_cast<std::size_t>(f.map.size_bytes()), std::byte{0xA5});
  std::int32_t const good[] = {3, 0, 2};
  std::int32_t const negative[] = {3, -1, 2};
  std::int32_t const outside[] = {3, 4, 2};
  auto const with = [&](std::int32_t const* pages, std::int64_t count) {
    return view<int8_rows>{f.bytes.data(), f.map, {pages, count}};
  };
  f.refused(status::bad_page, with(nullptr, 0), f.x, {0, 20});
  f.refused(status::bad_page, with(nullptr, 4), f.x, {0, 20});
  f.refused(status::bad_tokens, with(good, 3), f.x, {0, 49});
  f.refused(status::bad_tokens, with(good, 3), f.x, {0, most});
  f.refused(status::bad_tokens, with(good, 3), f.x, {most - 3, most});
  f.refused(status::bad_page, with(negative, 3), f.x, {0, 48});
  f.refused(status::bad_page, with(outside, 3), f.x, {16, 17});
  // Entries that the range does not need are not read.
  CHECK(encode(with(negative, 3), f.x.source(), {32, 48}).code == status::ok);
  CHECK(encode(with(outside, 1000000), f.x.source(), {0, 16}).code == status::ok);
}

TEST_CASE("products refuse the same and write nothing") {
  fixture<int8_rows> f;
  REQUIRE(encode(f.coded(), f.x.source(), {0, 64}).code == status::ok);
  std::vector<float> const in(64 * 8, 1.0f);
  std::vector<float> const untouched(64 * 8, 777.0f);
  auto const refused = [&](status code, token_range tokens, int query_heads) {
    CAPTURE(tokens.begin, tokens.end, query_heads);
    auto out = untouched;
    CHECK(gemv_qk(f.coded(), tokens, query_heads, in.data(), nullptr, out.data()) == code);
    CHECK(out == untouched);
    CHECK(gemv_pv(f.coded(), tokens, query_heads, in.data(), out.data()) == code);
    CHECK(out == untouched);
  };
  refused(status::bad_tokens, {0, 65}, 2);
  refused(status::bad_tokens, {3, 2}, 2);
  refused(status::bad_tokens, {-1, 2}, 2);
  refused(status::bad_tokens, {0, most}, 2);
  for (int const query_heads : {3, 1, 0, -2, 5}) refused(status::bad_heads, {0, 4}, query_heads);
}

TEST_CASE("the empty range is encoded by writing nothing") {
  fixture<by_token> f;
  for (token_range const r : {token_range{0, 0}, {16, 16}, {64, 64}}) {
    CHECK(encode(f.coded(), f.x.source(), r).code == status::ok);
    CHECK(f.bytes == std::vector<std::byte>(f.bytes.size(), std::byte{0xA5}));
    CHECK(decode(f.coded(), f.y.target(), r) == status::ok);
    CHECK(f.y.values == rows(2, 20, 64, 777.0f).values);
  }
  // Without pages to read, no table is needed.
  layout const paged = make_pages<by_token>(2, 20, 4, 32);
  CHECK(encode(view<by_token>{nullptr, paged, {}}, rows(2, 20, 0).source(), {0, 0}).code ==
        status::ok);
}

}  // namespace
