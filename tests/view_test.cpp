// SPDX-License-Identifier: Apache-2.0
// Views: trivially copyable, and the same bytes whatever pages they are scattered over.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

using by_token = codec<hybrid<2, range::narrow>, axis::token>;
using by_channel = codec<affine<2>, axis::channel>;
using rows3 = row_codec<midrise<3>>;

TEST_CASE("views own nothing") {
  STATIC_REQUIRE(std::is_trivially_copyable_v<view<by_token>>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<view<rows3, std::byte const>>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<view<identity<half>>>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<source_view>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<target_view>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<transform_view>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<block_table>);
  // Writers become readers, readers never writers.
  STATIC_REQUIRE(std::is_convertible_v<view<rows3>, view<rows3, std::byte const>>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<view<rows3, std::byte const>, view<rows3>>);
  STATIC_REQUIRE(std::is_convertible_v<target_view, source_view>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<source_view, target_view>);
}

TEST_CASE("const data gives a source, other data a target") {
  std::vector<bfloat16> data(2 * 3 * 8);
  auto const target = make_tensor(data.data(), 2, 8, 3);
  auto const source = make_tensor(static_cast<bfloat16 const*>(data.data()), 2, 8, 3);
  STATIC_REQUIRE(std::is_same_v<decltype(target), target_view const>);
  STATIC_REQUIRE(std::is_same_v<decltype(source), source_view const>);
  CHECK(target.type == dtype::bf16);
  CHECK(source.row(1, 2) == reinterpret_cast<std::byte const*>(data.data() + (2 * 2 + 1) * 8));
  auto const head_major = make_tensor(data.data(), 2, 8, 3, order::head_major);
  CHECK(head_major.row(1, 2) == reinterpret_cast<std::byte*>(data.data() + (3 + 2) * 8));
}

/// Each page of a paged view holds what a view of that page's tokens alone holds.
template <class C>
void check_pages(random_source& random, int page_tokens, tile_options o) {
  CAPTURE(std::string(std::string_view(C::name())), page_tokens);
  constexpr int heads = 2, head_dim = 46, pool_pages = 6;
  std::int64_t const tokens = 4 * page_tokens;
  rows const x = normal_rows(random, heads, head_dim, tokens);
  std::int32_t const pages[] = {5, 0, 3, 1};
  layout const paged = make_pages<C>(heads, head_dim, pool_pages, page_tokens, o);
  std::vector<std::byte> pool(static_cast<std::size_t>(paged.size_bytes()), std::byte{0xA5});
  view<C> const v{pool.data(), paged, {pages, 4}};
  REQUIRE(encode(v, x.source(), {0, tokens}).code == status::ok);

  layout const single = make_pages<C>(heads, head_dim, 1, page_tokens, o);
  auto const size = static_cast<std::size_t>(single.size_bytes());
  REQUIRE(pool.size() == pool_pages * size);
  std::int32_t const first = 0;
  for (int i = 0; i < 4; ++i) {
    std::vector<std::byte> page(size);
    source_view part = x.source();
    part.data = part.row(0, i * page_tokens);
    part.map.tokens = page_tokens;
    REQUIRE(encode(view<C>{page.data(), single, {&first, 1}}, part, {0, page_tokens}).code ==
            status::ok);
    REQUIRE(std::equal(page.begin(), page.end(),
                       pool.begin() + static_cast<std::ptrdiff_t>(size) * pages[i]));
  }
  for (int const free : {2, 4}) {
    auto const begin = pool.begin() + static_cast<std::ptrdiff_t>(size) * free;
    REQUIRE(std::all_of(begin, begin + static_cast<std::ptrdiff_t>(size),
                        [](std::byte b) { return b == std::byte{0xA5}; }));
  }

  // Moving pages moves the tokens, exactly; products do not notice.
  std::vector<std::byte> moved(pool.size());
  std::int32_t const other[] = {2, 4, 1, 0};
  for (int i = 0; i < 4; ++i) {
    auto const from = pool.begin() + static_cast<std::ptrdiff_t>(size) * pages[i];
    std::copy(from, from + static_cast<std::ptrdiff_t>(size),
              moved.begin() + static_cast<std::ptrdiff_t>(size) * other[i]);
  }
  view<C, std::byte const> const w{moved.data(), paged, {other, 4}};
  rows a(heads, head_dim, tokens), b = a;
  REQUIRE(decode(v, a.target(), {0, tokens}) == status::ok);
  REQUIRE(decode(w, b.target(), {0, tokens}) == status::ok);
  REQUIRE(a.values == b.values);
  token_range const part{page_tokens - 1, 3 * page_tokens + 1};
  auto const count = static_cast<std::size_t>(heads * part.size());
  std::vector<float> s(count), r(count);
  REQUIRE(gemv_qk(v, part, heads, x.values.data(), nullptr, s.data()) == status::ok);
  REQUIRE(gemv_qk(w, part, heads, x.values.data(), nullptr, r.data()) == status::ok);
  REQUIRE(s == r);
}

TEST_CASE("a page holds its tokens wherever it lies") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int const page_tokens : {16, 32, 64}) {
    tile_options const o{.tile_tokens = 16, .group = 16, .alignment = 128};
    check_pages<by_token>(random, page_tokens, o);
    check_pages<by_channel>(random, page_tokens, o);
    check_pages<rows3>(random, page_tokens, o);
    check_pages<row_codec<int8_head>>(random, page_tokens, o);
    check_pages<identity<bfloat16>>(random, page_tokens, o);
  }
  for (int const page_tokens : {1, 5, 48}) {  // row codecs take any page
    check_pages<rows3>(random, page_tokens, {.tile_tokens = 1, .alignment = 2});
    check_pages<by_channel>(random, page_tokens, {.tile_tokens = page_tokens, .group = 20});
  }
}

TEST_CASE("plain tensors may lie in pages too") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  constexpr int heads = 2, head_dim = 46, page_tokens = 8;
  rows const x = normal_rows(random, heads, head_dim, 21);
  // An engine's pool [pages, 2 (K and V), page tokens, heads, head_dim]; K.
  std::int64_t const page = 2 * page_tokens * heads * head_dim;
  tensor_strides const strides{heads * head_dim, head_dim, page};
  std::int32_t const pages[] = {3, 1, 4};
  std::vector<float> pool(static_cast<std::size_t>(5 * page), 777.0f);
  for (std::int64_t t = 0; t < 21; ++t) {
    for (int h = 0; h < heads; ++h) {
      for (int d = 0; d < head_dim; ++d) {
        std::int64_t const at = pages[t / 8] * page + t % 8 * strides.token + h * head_dim + d;
        pool[static_cast<std::size_t>(at)] = x.at(t, h, d);
      }
    }
  }
  layout const m =
      make_tensor_layout(dtype::f32, heads, head_dim, 5 * page_tokens, strides, page_tokens);
  source_view const paged{
      reinterpret_cast<std::byte const*>(pool.data()), dtype::f32, m, {pages, 3}};

  layout const coded = make_row_records<rows3>(heads, head_dim, 21);
  std::vector<std::byte> a(static_cast<std::size_t>(coded.size_bytes())), b = a;
  REQUIRE(encode(view<rows3>{a.data(), coded, {}}, paged, {0, 21}).code == status::ok);
  REQUIRE(encode(view<rows3>{b.data(), coded, {}}, x.source(), {0, 21}).code == status::ok);
  CHECK(a == b);

  std::vector<float> target(pool.size(), 777.0f);
  target_view const to{reinterpret_cast<std::byte*>(target.data()), dtype::f32, m, {pages, 3}};
  REQUIRE(decode(view<rows3>{a.data(), coded, {}}, to, {0, 21}) == status::ok);
  rows y(heads, head_dim, 21);
  REQUIRE(decode(view<rows3>{a.data(), coded, {}}, y.target(), {0, 21}) == status::ok);
  std::size_t written = 0;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    written += target[i] == 777.0f ? 0 : 1;
    REQUIRE((pool[i] == 777.0f) == (target[i] == 777.0f));
  }
  CHECK(written == y.values.size());
}

}  // namespace
