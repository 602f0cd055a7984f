// SPDX-License-Identifier: Apache-2.0
/// @file
/// Where tiles and their parameters lie: one descriptor for row records, head tiles, pages and
/// engine tensors. `make_layout.hpp` builds the common ones; engines with other strides fill in the
/// fields and call `check`.
#pragma once

#include <kvarts/bits.hpp>
#include <kvarts/codec.hpp>
#include <kvarts/numerics.hpp>
#include <kvarts/packing.hpp>
#include <kvarts/status.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace kvarts {

/// One kind of bytes (codes, scales, zero-points, padding) of all tiles: the part of (page, tile,
/// head) is `bytes` long and begins at `offset + page * page_stride + tile * tile_stride + head *
/// head_stride`, all in bytes. An absent plane has no bytes.
struct plane {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int64_t tile_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t page_stride = 0;

  constexpr std::int64_t at(std::int64_t page, std::int64_t tile,
                            std::int64_t head) const noexcept {
    return offset + page * page_stride + tile * tile_stride + head * head_stride;
  }
};

/// One layer of K or of V: extents, and a plane for each kind of bytes. A tile is `tile_tokens` x
/// `head_dim` codes of one head, the smallest block encoded by itself. Without pages tile i holds
/// tokens from i * tile_tokens on; with pages token t is in page `block_table[t / page_tokens]`,
/// and tiles count from the page's begin.
struct layout {
  std::int32_t heads = 0;
  std::int32_t head_dim = 0;
  std::int64_t tokens = 0;       ///< room: all tokens that fit, of all pages if there are pages
  std::int32_t tile_tokens = 0;  ///< T
  std::int32_t group = 0;        ///< G; 0 for row codecs and plain values
  std::int32_t page_tokens = 0;  ///< P; 0 without pages
  plane codes{};
  plane scales{};
  plane zeros{};
  plane tile_padding{};  ///< follows each tile (or record, when shared by all heads)
  plane page_padding{};  ///< ends each page (or the whole, without pages)

  constexpr std::int64_t pages() const noexcept {
    return page_tokens > 0 ? tokens / page_tokens : 1;
  }

  /// Tiles of one page (or of the whole, without pages).
  constexpr std::int64_t tiles() const noexcept {
    return ceil_div(page_tokens > 0 ? page_tokens : tokens, tile_tokens);
  }

  /// Bytes from the first to the last, padding included.
  constexpr std::int64_t size_bytes() const noexcept {
    std::int64_t end = 0;
    for (plane const* p : {&codes, &scales, &zeros, &tile_padding, &page_padding}) {
      if (p->bytes == 0 || tokens == 0) continue;
      end = std::max(end, p->at(pages() - 1, tiles() - 1, heads - 1) + p->bytes);
    }
    return end;
  }

  /// Bits a number, parameters included, padding excluded.
  constexpr double effective_bits() const noexcept {
    auto const bytes = static_cast<double>(codes.bytes + scales.bytes + zeros.bytes);
    return 8.0 * bytes / (static_cast<double>(tile_tokens) * head_dim);
  }
};

namespace detail {

/// Groups that one token (along channels), one tile of tokens (along tokens) or one row has.
constexpr std::int64_t parameters_per_tile(codec_info const& c, int group, int tile_tokens,
                                           int head_dim) noexcept {
  switch (c.grouped_along) {
    case axis::channel: return std::int64_t{tile_tokens} * ceil_div(head_dim, group);
    case axis::token: return std::int64_t{tile_tokens / group} * head_dim;
    default: return tile_tokens;
  }
}

/// Bytes of the codes, scales and zero-points of one tile.
struct tile_bytes {
  std::int64_t codes = 0;
  std::int64_t scales = 0;
  std::int64_t zeros = 0;
};

template <packing P>
constexpr tile_bytes bytes_of_tile(codec_info const& c, int group, int tile_tokens,
                                   int head_dim) noexcept {
  std::int64_t const count = parameters_per_tile(c, group, tile_tokens, head_dim);
  return {ceil_div(P::tile_bits({tile_tokens, head_dim, c.bits}), 8), count * c.scale_bytes,
          count * c.zero_bytes};
}

/// Extents alone: everything that the plane checks divide or multiply by.
constexpr problem check_extents(layout const& m, codec_info const& c) noexcept {
  if (m.head_dim < 1 || m.head_dim > max_head_dim) {
    return {status::bad_head_dim, "head_dim is {}, outside 1..{}", m.head_dim, max_head_dim};
  }
  if (m.heads < 1 || m.heads > 65536) {
    return {status::bad_heads, "a layout has 1 to {} heads, not {}", 65536, m.heads};
  }
  if (m.tokens < 0 || m.tokens > (std::int64_t{1} << 31)) {
    return {status::bad_tokens, "a layout has room for 0 to {} tokens, not {}",
            std::int64_t{1} << 31, m.tokens};
  }
  if (m.tile_tokens < 1 || m.tile_tokens > (1 << 20)) {
    return {status::bad_tile, "a tile has 1 to {} tokens, not {}", 1 << 20, m.tile_tokens};
  }
  bool const grouped = c.grouped_along != axis::row;
  if (grouped && (m.group < 1 || m.group > max_head_dim)) {
    return {status::bad_group, "the group length is {}, outside 1..{}", m.group, max_head_dim};
  }
  if (grouped && c.group != dynamic_group && m.group != c.group) {
    return {status::bad_group, "the group length is {} where the codec has {}", m.group, c.group};
  }
  if (c.grouped_along == axis::token && m.tile_tokens % m.group != 0) {
    return {status::bad_tile, "a tile of {} tokens does not hold whole groups of {} tokens",
            m.tile_tokens, m.group};
  }
  if (m.page_tokens < 0 || (m.page_tokens > 0 && m.page_tokens % m.tile_tokens != 0)) {
    return {status::bad_page, "a page of {} tokens does not hold whole tiles of {} tokens",
            m.page_tokens, m.tile_tokens};
  }
  if (m.page_tokens > 0 && m.tokens % m.page_tokens != 0) {
    return {status::bad_page, "room for {} tokens is no whole number of pages of {} tokens",
            m.tokens, m.page_tokens};
  }
  return {};
}

/// How a plane repeats: a stride in bytes, and how often.
struct repetition {
  std::int64_t stride = 0;
  std::int64_t count = 1;
  friend constexpr bool operator==(repetition const&, repetition const&) = default;
};

constexpr std::array<repetition, 3> repetitions(layout const& m, plane const& p) noexcept {
  return {{{p.tile_stride, m.tiles()}, {p.head_stride, m.heads}, {p.page_stride, m.pages()}}};
}

/// Parts of one plane may not overlap: sorted by size, each stride must pass over all that is
/// inside.
constexpr problem check_plane(layout const& m, plane const& p, std::int64_t bytes) noexcept {
  if (p.bytes != bytes) {
    return {status::bad_plane, "a plane has {} bytes a tile where the codec needs {}", p.bytes,
            bytes};
  }
  if (bytes == 0 || m.tokens == 0) return {};
  if (p.offset < 0) return {status::bad_plane, "a plane begins at {}", p.offset};
  auto all = repetitions(m, p);
  std::sort(all.begin(), all.end(),
            [](repetition const& a, repetition const& b) { return a.stride < b.stride; });
  std::int64_t extent = bytes;
  for (auto const& [stride, count] : all) {
    if (count <= 1) continue;
    if (stride < extent) {
      return {status::bad_stride, "a stride of {} bytes makes parts of {} bytes overlap", stride,
              extent};
    }
    if (stride > ((std::int64_t{1} << 60) - extent) / count) {
      return {status::bad_stride, "a stride of {} bytes makes the layout larger than 2^{} bytes",
              stride, 60};
    }
    extent += stride * (count - 1);
  }
  return {};
}

/// Bytes from a plane's first to its last within one period: of the repetitions that both planes
/// share, those of at least `period` bytes do not count.
constexpr std::int64_t extent_within(std::int64_t period, std::int64_t bytes,
                                     std::array<repetition, 3> const& all,
                                     std::array<repetition, 3> const& other) noexcept {
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool const shared = all[i] == other[i] && all[i].stride >= period;
    if (!shared) bytes += all[i].stride * (all[i].count - 1);
  }
  return bytes;
}

/// Two checked planes may not overlap: they lie apart as wholes, or within a period that both
/// repeat with, neither reaching into the next one.
constexpr problem check_apart(layout const& m, plane const& a, plane const& b) noexcept {
  if (a.offset > b.offset) return check_apart(m, b, a);
  if (a.bytes == 0 || b.bytes == 0 || m.tokens == 0) return {};
  auto const of_a = repetitions(m, a);
  auto const of_b = repetitions(m, b);
  constexpr std::int64_t whole = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t const period : {of_a[0].stride, of_a[1].stride, of_a[2].stride, whole}) {
    if (period <= 0) continue;
    std::int64_t const end_a = a.offset + extent_within(period, a.bytes, of_a, of_b);
    std::int64_t const end_b = b.offset + extent_within(period, b.bytes, of_b, of_a);
    if (end_a <= b.offset && end_b - a.offset <= period) return {};
  }
  return {status::bad_stride, "two planes overlap: one begins at byte {}, the other at {}",
          a.offset, b.offset};
}

}  // namespace detail

/// First fault of a layout for a codec and a packing; names the offending numbers.
template <codec_type C, packing P = linear>
constexpr problem check(layout const& m) noexcept {
  constexpr codec_info c = info_of<C>();
  if (auto const p = detail::check_extents(m, c)) return p;
  auto const bytes = detail::bytes_of_tile<P>(c, m.group, m.tile_tokens, m.head_dim);
  if (auto const p = detail::check_plane(m, m.codes, bytes.codes)) return p;
  if (auto const p = detail::check_plane(m, m.scales, bytes.scales)) return p;
  if (auto const p = detail::check_plane(m, m.zeros, bytes.zeros)) return p;
  std::array<plane const*, 4> const planes{&m.codes, &m.scales, &m.zeros, &m.tile_padding};
  for (std::size_t i = 0; i < planes.size(); ++i) {
    for (std::size_t j = i + 1; j < planes.size(); ++j) {
      if (auto const p = detail::check_apart(m, *planes[i], *planes[j])) return p;
    }
  }
  return {};
}

/// `check` as a status alone.
template <codec_type C, packing P = linear>
constexpr status validate(layout const& m) noexcept {
  return check<C, P>(m).code;
}

}  // namespace kvarts
