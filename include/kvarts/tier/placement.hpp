// SPDX-License-Identifier: Apache-2.0
/// @file
/// The library's `layout` of every layer of a host tier, so that `encode`, `decode` and the
/// products work on the tier's memory through views.
#pragma once

#include <kvarts/tier/capacity.hpp>

namespace kvarts::tier {

/// Where the records of one layer of K or of V lie, in bytes: record (page p, head h, index o in
/// its page) begins at `base + p * page + h * head + o * record`.
struct record_strides {
  std::int64_t base = 0;
  std::int64_t page = 0;
  std::int64_t head = 0;  ///< 0 where a record holds all heads
  std::int64_t record = 0;
};

/// The strides of a layer in a tier of `pages` pages. Layers may have records of different sizes,
/// so the layers before this one count with their own.
constexpr record_strides strides_of(geometry const& g, side s, int layer,
                                    std::int64_t pages) noexcept {
  std::int64_t const own = record_bytes(g, s, layer);
  std::int64_t const before = record_bytes_before(g, s, layer);
  std::int64_t const all = record_bytes_before(g, s, g.layers);
  std::int64_t const count = g.page_tokens / g.shape().tokens;  // records of a page (and head)
  switch (g.placement) {
    case host_layout::layer_first: return {pages * count * before, count * own, 0, own};
    case host_layout::page_first: return {before, count * all, 0, all};
    case host_layout::page_first_direct: return {count * before, count * all, 0, own};
    default: return {before, g.heads * count * all, count * all, all};
  }
}

namespace detail {

/// Strides of one kind of bytes, `bytes` a tile, that begins `offset` bytes into each record.
constexpr plane plane_of(geometry const& g, record_strides const& at, int tiles,
                         std::int64_t offset, std::int64_t bytes) noexcept {
  record_shape const r = g.shape();
  bool const by_token = r.head_order == order::token_major;
  plane p{at.base + offset, bytes, at.record, bytes, at.page};
  if (g.record == record_kind::page) {
    p.tile_stride = by_token ? r.heads * bytes : bytes;
    p.head_stride = by_token ? bytes : tiles * bytes;
  }
  if (at.head != 0) p.head_stride = at.head;
  return p;
}

}  // namespace detail

/// Layout of segment `part` of a layer of K or of V in a tier of `pages` pages, unchecked: `pages`
/// of `page_tokens` tokens behind a block table. It describes the whole memory of the side, from
/// its first byte on. The last segment owns the padding of the records.
constexpr layout plan_layout(geometry const& g, side s, int layer, std::int64_t pages,
                             int part = 0) noexcept {
  row_segments const& rows = g.rows(s, layer);
  record_shape const r = g.shape();
  record_strides const at = strides_of(g, s, layer, pages);
  auto const offset = detail::segment_offsets(rows, part, r);
  auto const bytes = detail::tile_bytes_of(rows[part]);
  layout m = detail::extents_of(g, rows[part], pages * g.page_tokens);
  int const tiles = r.tokens / m.tile_tokens;
  m.codes = detail::plane_of(g, at, tiles, offset.codes, bytes.codes);
  m.scales = detail::plane_of(g, at, tiles, offset.scales, bytes.scales);
  m.zeros = detail::plane_of(g, at, tiles, offset.zeros, bytes.zeros);
  if (part + 1 < rows.count) return m;
  std::int64_t const used = used_bytes(rows, r);
  plane const padding{at.base + used, record_bytes(rows, r) - used, 0, at.head, at.page};
  if (g.record == record_kind::page) {
    m.page_padding = padding;
  } else {
    m.tile_padding = padding;
    m.tile_padding.tile_stride = at.record;
  }
  return m;
}

/// First fault of a tier of so many pages.
constexpr problem check(geometry const& g, std::int64_t pages) noexcept {
  if (auto const p = check(g)) return p;
  std::int64_t const most_tokens = std::int64_t{1} << 31;
  if (pages < 0 || pages > most_tokens / g.page_tokens) {
    return {status::bad_page, "a tier has 0 to {} pages of so many tokens, not {}",
            most_tokens / g.page_tokens, pages};
  }
  if (pages > detail::max_bytes / bytes_per_page(g)) {
    return {status::bad_page, "{} pages of {} bytes are too many", pages, bytes_per_page(g)};
  }
  return {};
}

/// Bytes of the memory of K or of V of a tier of `pages` pages.
constexpr std::int64_t size_bytes(geometry const& g, side s, std::int64_t pages) noexcept {
  return pages * bytes_per_page(g, s);
}

#if defined(__cpp_exceptions)

/// `plan_layout`, checked: throws `error` for a geometry, layer, page count or segment that cannot
/// be.
inline layout make_layout(geometry const& g, side s, int layer, std::int64_t pages, int part = 0) {
  throw_if(check(g, pages));
  if (layer < 0 || layer >= g.layers) {
    throw_if({status::unsupported, "there is no layer {} among {}", layer, g.layers});
  }
  int const count = g.rows(s, layer).count;
  if (part < 0 || part >= count) {
    throw_if({status::bad_plane, "there is no segment {} among {}", part, count});
  }
  return plan_layout(g, s, layer, pages, part);
}

#endif

}  // namespace kvarts::tier
