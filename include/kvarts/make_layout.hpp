// SPDX-License-Identifier: Apache-2.0
/// @file
/// Builds the common layouts of coded caches: row records, head tiles, pages. Each `make_*` throws
/// `kvarts::error` with a sentence that names the offending number; `plan_*` builds the same
/// without checks, for engines without exceptions, which call `check<C, P>` themselves.
#pragma once

#include <kvarts/layout.hpp>

#include <numeric>

namespace kvarts {

/// Choices for tiles. Zeros mean the usual: 32 tokens a tile (whole groups of tokens), the codec's
/// own group length (32 where it is dynamic).
struct tile_options {
  std::int32_t tile_tokens = 0;
  std::int32_t group = 0;
  std::int32_t alignment = 128;
};

namespace detail {

constexpr problem check_alignment(std::int64_t alignment) noexcept {
  if (is_power_of_two(alignment) && alignment <= (1 << 20)) return {};
  return {status::bad_alignment, "an alignment is a power of two up to {}, not {}", 1 << 20,
          alignment};
}

constexpr int group_or_default(codec_info const& c, int group) noexcept {
  if (c.grouped_along == axis::row) return 0;
  if (group != 0) return group;
  return c.group != dynamic_group ? c.group : 32;
}

/// About 32 tokens: whole groups of tokens, and a divisor of the page where there are pages.
constexpr int tile_or_default(codec_info const& c, int tile_tokens, int group,
                              int page_tokens) noexcept {
  if (tile_tokens != 0) return tile_tokens;
  bool const whole_groups = c.grouped_along == axis::token && group > 0;
  int const usual = whole_groups ? static_cast<int>(round_up(32, group)) : 32;
  if (page_tokens < 1 || page_tokens % usual == 0) return usual;
  return whole_groups ? group : std::gcd(page_tokens, 32);
}

}  // namespace detail

/// Row records: a token's record is `[codes, head-major][scales][zero-points][zero padding]`,
/// padded to `alignment` bytes; each head's codes begin at a byte. For codecs not grouped along
/// tokens. INT8 with 8 heads of 128 at alignment 128 is HiQCache's record of 1152 bytes.
template <codec_type C, packing P = linear>
constexpr layout plan_row_records(int heads, int head_dim, std::int64_t tokens, int alignment = 128,
                                  int group = 0) noexcept {
  static_assert(C::grouped_along != axis::token,
                "row records hold single tokens: codecs grouped along tokens need tiles");
  constexpr codec_info c = info_of<C>();
  layout m;
  m.heads = heads;
  m.head_dim = head_dim;
  m.tokens = tokens;
  m.tile_tokens = 1;
  m.group = detail::group_or_default(c, group);
  if (detail::check_extents(m, c) || detail::check_alignment(alignment)) return m;

  auto const bytes = detail::bytes_of_tile<P>(c, m.group, 1, head_dim);
  std::int64_t const used = heads * (bytes.codes + bytes.scales + bytes.zeros);
  std::int64_t const record = round_up(used, alignment);
  m.codes = {0, bytes.codes, record, bytes.codes, 0};
  m.scales = {heads * bytes.codes, bytes.scales, record, bytes.scales, 0};
  m.zeros = {heads * (bytes.codes + bytes.scales), bytes.zeros, record, bytes.zeros, 0};
  m.tile_padding = {used, record - used, record, 0, 0};
  return m;
}

namespace detail {

/// Fills in the planes of `[page][head][tile]` once all extents are set.
template <codec_type C, packing P>
constexpr layout plan_tiles(layout m, int alignment) noexcept {
  constexpr codec_info c = info_of<C>();
  if (check_extents(m, c) || check_alignment(alignment)) return m;
  auto const bytes = bytes_of_tile<P>(c, m.group, m.tile_tokens, m.head_dim);
  bool const together = c.grouped_along != axis::row;
  std::int64_t const used = bytes.codes + (together ? bytes.scales + bytes.zeros : 0);
  std::int64_t const tile = round_up(used, alignment);
  std::int64_t const head = tile * m.tiles();
  std::int64_t const scales_head = bytes.scales * m.tiles();
  std::int64_t const page_used = m.heads * (head + (together ? 0 : scales_head));
  std::int64_t const page = round_up(page_used, alignment);
  m.codes = {0, bytes.codes, tile, head, page};
  m.scales = together ? plane{bytes.codes, bytes.scales, tile, head, page}
                      : plane{m.heads * head, bytes.scales, bytes.scales, scales_head, page};
  m.zeros = {bytes.codes + bytes.scales, bytes.zeros, tile, head, page};
  m.tile_padding = {used, tile - used, tile, head, page};
  m.page_padding = {page_used, page - page_used, 0, 0, page};
  return m;
}

template <codec_type C>
constexpr layout tile_extents(int heads, int head_dim, tile_options o, int page_tokens) noexcept {
  constexpr codec_info c = info_of<C>();
  layout m;
  m.heads = heads;
  m.head_dim = head_dim;
  m.group = group_or_default(c, o.group);
  m.tile_tokens = tile_or_default(c, o.tile_tokens, m.group, page_tokens);
  m.page_tokens = page_tokens;
  return m;
}

}  // namespace detail

/// Pages of head tiles: `[page][head][tile]`. Groups keep their parameters with their codes, a tile
/// is
/// `[codes][scales][zero-points][zero padding]`; row codecs have code tiles first and their scales
/// in a plane behind them, 2 bytes a token. Code tiles and pages are padded to `alignment` bytes.
template <codec_type C, packing P = linear>
constexpr layout plan_pages(int heads, int head_dim, std::int64_t pages, int page_tokens,
                            tile_options o = {}) noexcept {
  layout m = detail::tile_extents<C>(heads, head_dim, o, page_tokens);
  bool const countable = pages >= 0 && pages <= (std::int64_t{1} << 31);
  m.tokens = countable ? pages * page_tokens : pages;
  return detail::plan_tiles<C, P>(m, o.alignment);
}

/// Head tiles of one sequence without pages, `[head][tile]`, as one page that holds all. Room is
/// rounded up to whole tiles.
template <codec_type C, packing P = linear>
constexpr layout plan_head_tiles(int heads, int head_dim, std::int64_t tokens,
                                 tile_options o = {}) noexcept {
  layout m = detail::tile_extents<C>(heads, head_dim, o, 0);
  bool const countable = tokens > 0 && tokens <= (std::int64_t{1} << 31) && m.tile_tokens > 0;
  m.tokens = countable ? round_up(tokens, m.tile_tokens) : tokens;
  return detail::plan_tiles<C, P>(m, o.alignment);
}

#if defined(__cpp_exceptions)

/// `plan_row_records`, checked.
template <codec_type C, packing P = linear>
layout make_row_records(int heads, int head_dim, std::int64_t tokens, int alignment = 128,
                        int group = 0) {
  throw_if(detail::check_alignment(alignment));
  layout const m = plan_row_records<C, P>(heads, head_dim, tokens, alignment, group);
  throw_if(check<C, P>(m));
  return m;
}

/// `plan_pages`, checked.
template <codec_type C, packing P = linear>
layout make_pages(int heads, int head_dim, std::int64_t pages, int page_tokens,
                  tile_options o = {}) {
  throw_if(detail::check_alignment(o.alignment));
  layout const m = plan_pages<C, P>(heads, head_dim, pages, page_tokens, o);
  if (page_tokens < 1) {
    throw_if({status::bad_page, "a page of {} tokens holds nothing", page_tokens});
  }
  throw_if(check<C, P>(m));
  return m;
}

/// `plan_head_tiles`, checked.
template <codec_type C, packing P = linear>
layout make_head_tiles(int heads, int head_dim, std::int64_t tokens, tile_options o = {}) {
  throw_if(detail::check_alignment(o.alignment));
  layout const m = plan_head_tiles<C, P>(heads, head_dim, tokens, o);
  throw_if(check<C, P>(m));
  return m;
}

#endif

}  // namespace kvarts
