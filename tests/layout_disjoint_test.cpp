// SPDX-License-Identifier: Apache-2.0
// No two parts of a layout share a byte, and none lies outside: by marking every byte.
#include "support/catch.hpp"
#include "support/random.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

struct marks {
  std::vector<std::uint8_t> owned;
  bool shared = false;   ///< a byte has two owners
  bool outside = false;  ///< a byte is not in 0..size-1

  void mark(std::int64_t begin, std::int64_t count) {
    for (std::int64_t i = begin; i < begin + count; ++i) {
      if (i < 0 || i >= static_cast<std::int64_t>(owned.size())) {
        outside = true;
      } else {
        shared = ++owned[static_cast<std::size_t>(i)] > 1 || shared;
      }
    }
  }
};

std::int64_t tiles_of(layout const& m) {
  std::int64_t const tokens = m.page_tokens > 0 ? m.page_tokens : m.tokens;
  return (tokens + m.tile_tokens - 1) / m.tile_tokens;
}

marks mark_all(layout const& m) {
  marks found;
  found.owned.resize(static_cast<std::size_t>(m.size_bytes()));
  if (m.tokens == 0) return found;
  std::int64_t const all_pages = m.page_tokens > 0 ? m.tokens / m.page_tokens : 1;
  for (plane const* p : {&m.codes, &m.scales, &m.zeros, &m.tile_padding, &m.page_padding}) {
    bool const padding = p == &m.tile_padding || p == &m.page_padding;
    // A padding without a stride is shared by all heads (tiles, pages).
    std::int64_t const heads = padding && p->head_stride == 0 ? 1 : m.heads;
    std::int64_t const tiles = padding && p->tile_stride == 0 ? 1 : tiles_of(m);
    std::int64_t const pages = padding && p->page_stride == 0 ? 1 : all_pages;
    for (std::int64_t page = 0; page < pages; ++page) {
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        for (std::int64_t head = 0; head < heads; ++head) {
          found.mark(
              p->offset + page * p->page_stride + tile * p->tile_stride + head * p->head_stride,
              p->bytes);
        }
      }
    }
  }
  return found;
}

template <class C>
void require_whole(layout const& m) {
  CAPTURE(std::string(std::string_view(C::name())), to_string(C::grouped_along));
  CAPTURE(m.heads, m.head_dim, m.tokens, m.tile_tokens, m.group, m.page_tokens);
  REQUIRE(check<C>(m).sentence() == "");
  marks const found = mark_all(m);
  REQUIRE_FALSE(found.shared);
  REQUIRE_FALSE(found.outside);
  // make_* leave no gaps: what is not code, scale or zero-point is padding.
  for (std::uint8_t const owners : found.owned) REQUIRE(owners == 1);
}

struct shape {
  int heads, head_dim, group, alignment;
};

shape random_shape(random_source& random) {
  int const dims[] = {1, 46, 64, 80, 96, 100, 128, 192};
  int const groups[] = {1, 5, 16, 32, 64, 128};
  return {random.between(1, 4), dims[random.between(0, 7)], groups[random.between(0, 5)],
          1 << random.between(0, 8)};
}

TEST_CASE("every byte of a made layout has one owner") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int round = 0; round < 4; ++round) {
    for_each_codec([&](auto tag) {
      using C = typename decltype(tag)::type;
      shape const s = random_shape(random);
      bool const along_tokens = C::grouped_along == axis::token;
      int const tile = along_tokens ? s.group * random.between(1, 2) : random.between(1, 40);
      tile_options const o{tile, s.group, s.alignment};
      int const tokens = random.between(0, 150);
      require_whole<C>(make_head_tiles<C>(s.heads, s.head_dim, tokens, o));
      int const pages = random.between(0, 3);
      int const page_tokens = tile * random.between(1, 3);
      require_whole<C>(make_pages<C>(s.heads, s.head_dim, pages, page_tokens, o));
      if constexpr (C::grouped_along != axis::token) {
        require_whole<C>(
            make_row_records<C>(s.heads, s.head_dim, tokens % 9, s.alignment, s.group));
      }
    });
  }
}

/// Moves one number of one plane.
void disturb(random_source& random, layout& m) {
  plane* const planes[] = {&m.codes, &m.scales, &m.zeros, &m.tile_padding, &m.page_padding};
  plane& p = *planes[random.between(0, 4)];
  std::int64_t* const numbers[] = {&p.offset, &p.tile_stride, &p.head_stride, &p.page_stride};
  std::int64_t& number = *numbers[random.between(0, 3)];
  int const way = random.between(0, 3);
  if (way == 0) number += random.between(-4, 4);
  if (way == 1) number = random.between(0, 3) * (number / 2);
  if (way == 2) number = random.between(0, 2000);
  if (way == 3) std::swap(number, *numbers[random.between(0, 3)]);
}

template <class C>
void require_overlap_refused(random_source& random, layout const& good, int& refused) {
  for (int i = 0; i < 300; ++i) {
    layout m = good;
    for (int k = random.between(1, 3); k > 0; --k) disturb(random, m);
    if (validate<C>(m) != status::ok) {
      ++refused;
      continue;
    }
    if (m.size_bytes() > 1000000) continue;
    marks const found = mark_all(m);
    if (!found.shared && !found.outside) continue;
    for (plane const* p : {&m.codes, &m.scales, &m.zeros, &m.tile_padding, &m.page_padding}) {
      UNSCOPED_INFO("offset " << p->offset << " bytes " << p->bytes << " tile " << p->tile_stride
                              << " head " << p->head_stride << " page " << p->page_stride);
    }
    FAIL("an overlap passes: heads " << m.heads << ", tokens " << m.tokens << ", tile "
                                     << m.tile_tokens << ", page " << m.page_tokens);
  }
}

TEST_CASE("layouts whose parts overlap are refused, whatever was moved") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  using by_token = codec<affine<2>, axis::token>;
  using by_channel = codec<hybrid<3, range::narrow>, axis::channel>;
  using rows4 = row_codec<midrise<4>>;
  int refused = 0;
  for (int round = 0; round < 20; ++round) {
    tile_options const o{16, 16, 64};
    require_overlap_refused<by_token>(random, make_pages<by_token>(2, 46, 3, 32, o), refused);
    require_overlap_refused<by_token>(random, make_head_tiles<by_token>(3, 46, 50, o), refused);
    require_overlap_refused<by_channel>(random, make_row_records<by_channel>(2, 46, 5, 64, 16),
                                        refused);
    require_overlap_refused<rows4>(random, make_pages<rows4>(2, 80, 2, 32, o), refused);
    require_overlap_refused<rows4>(random, make_row_records<rows4>(3, 80, 6, 32), refused);
    require_overlap_refused<identity<half>>(random, make_row_records<identity<half>>(3, 9, 6, 32),
                                            refused);
  }
  CHECK(refused > 10000);
}

TEST_CASE("neighbours that overlap only across steps are refused") {
  using int8_rows = row_codec<int8_head>;
  // Records of 1040 bytes every 1024 bytes: the scales lie in the next record's codes.
  layout m = make_row_records<int8_rows>(8, 128, 10, 1);
  for (plane* p : {&m.codes, &m.scales}) p->tile_stride = 1024;
  CHECK(validate<int8_rows>(m) == status::bad_stride);
  // Scales in the codes of another head.
  m = make_head_tiles<int8_rows>(2, 64, 64);
  m.scales.offset = 100;
  CHECK(validate<int8_rows>(m) == status::bad_stride);
}

TEST_CASE("an engine's own layouts are accepted") {
  using int8_rows = row_codec<int8_head>;
  // [tokens, heads, 128 codes + 2 of scale + 2 spare]: parameters beside their codes.
  layout m = make_row_records<int8_rows>(8, 128, 100, 1);
  m.codes = {0, 128, 8 * 132, 132, 0};
  m.scales = {128, 2, 8 * 132, 132, 0};
  CHECK(check<int8_rows>(m).sentence() == "");
  CHECK_FALSE(mark_all(m).shared);

  // [heads, tokens, ...], the same.
  m.codes = {0, 128, 132, 132 * 100, 0};
  m.scales = {128, 2, 132, 132 * 100, 0};
  CHECK(check<int8_rows>(m).sentence() == "");
  CHECK_FALSE(mark_all(m).shared);

  // One pool of pages for codes, all scales behind it, head-major.
  m = make_pages<int8_rows>(2, 64, 5, 32, {.tile_tokens = 32, .alignment = 1});
  m.codes = {0, 2048, 2048, 2048, 4096};
  m.scales = {5 * 4096, 64, 64, 5 * 64, 64};
  m.page_padding = {};
  CHECK(check<int8_rows>(m).sentence() == "");
  CHECK_FALSE(mark_all(m).shared);

  // K and V of one layer in one row: [tokens, 2, heads, codes | scales]; K is the even half.
  m = make_row_records<int8_rows>(2, 64, 9, 1);
  m.codes = {0, 64, 2 * 132, 64, 0};
  m.scales = {128, 2, 2 * 132, 2, 0};
  CHECK(check<int8_rows>(m).sentence() == "");
}

}  // namespace
