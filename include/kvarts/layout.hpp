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
#include <cstddef>
#include <cstdint>

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

/// Plain values lie row after row, whatever the packing.
template <packing P>
constexpr tile_bytes bytes_of_tile(codec_info const& c, int group, int tile_tokens,
                                   int head_dim) noexcept {
  std::int64_t const count = parameters_per_tile(c, group, tile_tokens, head_dim);
  tile_shape const shape{tile_tokens, head_dim, c.bits};
  std::int64_t const bits = c.plain ? linear::tile_bits(shape) : P::tile_bits(shape);
  return {ceil_div(bits, 8), count * c.scale_bytes, count * c.zero_bytes};
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
  bool const grouped = c.grouped_along != axis::row;
  if (grouped && (m.group < 1 || m.group > max_head_dim)) {
    return {status::bad_group, "the group length is {}, outside 1..{}", m.group, max_head_dim};
  }
  if (grouped && c.group != dynamic_group && m.group != c.group) {
    return {status::bad_group, "the group length is {} where the codec has {}", m.group, c.group};
  }
  if (m.tile_tokens < 1 || m.tile_tokens > (1 << 20)) {
    return {status::bad_tile, "a tile has 1 to {} tokens, not {}", 1 << 20, m.tile_tokens};
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

/// The parts of a plane as nested steps, the smallest stride first; steps of one part are left out.
struct nest {
  struct step {
    std::int64_t stride = 0;
    std::int64_t count = 1;
  };

  std::int64_t bytes = 0;
  std::array<step, 3> steps{};
  int depth = 0;

  constexpr void add(std::int64_t stride, std::int64_t count) noexcept {
    if (count <= 1) return;
    int i = depth++;
    for (; i > 0 && at(i - 1).stride > stride; --i) at(i) = at(i - 1);
    at(i) = {stride, count};
  }
  constexpr step& at(int level) noexcept { return steps[static_cast<std::size_t>(level)]; }
  constexpr step at(int level) const noexcept { return steps[static_cast<std::size_t>(level)]; }

  /// Bytes from the first to the last of the inner `levels`.
  constexpr std::int64_t extent(int levels) const noexcept {
    std::int64_t all = bytes;
    for (int i = 0; i < levels; ++i) all += at(i).stride * (at(i).count - 1);
    return all;
  }
};

/// `shared`: a stride of 0 means one part for all, as paddings have it.
constexpr nest nest_of(layout const& m, plane const& p, bool shared) noexcept {
  nest n{p.bytes};
  if (!shared || p.tile_stride != 0) n.add(p.tile_stride, m.tiles());
  if (!shared || p.head_stride != 0) n.add(p.head_stride, m.heads);
  if (!shared || p.page_stride != 0) n.add(p.page_stride, m.pages());
  return n;
}

/// Largest offset and largest extent of a plane.
inline constexpr std::int64_t max_plane_bytes = std::int64_t{1} << 60;

/// Parts of one plane may not overlap: each stride must pass over all that is inside.
constexpr problem check_parts(layout const& m, plane const& p, bool shared) noexcept {
  if (p.bytes < 0 || p.bytes > max_plane_bytes) {
    return {status::bad_plane, "a plane has {} bytes a tile", p.bytes};
  }
  if (p.bytes == 0 || m.tokens == 0) return {};
  if (p.offset < 0 || p.offset > max_plane_bytes) {
    return {status::bad_plane, "a plane begins at {}", p.offset};
  }
  nest const n = nest_of(m, p, shared);
  for (int i = 0; i < n.depth; ++i) {
    auto const [stride, count] = n.at(i);
    std::int64_t const inner = n.extent(i);
    if (stride < inner) {
      return {status::bad_stride, "a stride of {} bytes makes parts of {} bytes overlap", stride,
              inner};
    }
    if (stride > (max_plane_bytes - inner) / count) {
      return {status::bad_stride, "a stride of {} bytes makes the layout larger than 2^{} bytes",
              stride, 60};
    }
  }
  return {};
}

constexpr problem check_plane(layout const& m, plane const& p, std::int64_t bytes) noexcept {
  if (p.bytes != bytes) {
    return {status::bad_plane, "a plane has {} bytes a tile where the codec needs {}", p.bytes,
            bytes};
  }
  return check_parts(m, p, false);
}

/// True when no part of `b`, which begins `distance` bytes after `a`, shares a byte with one of
/// `a`. Goes from the outermost step inwards; steps that both take alike are taken together.
/// Strides so unlike that it cannot tell count as an overlap.
constexpr bool apart(nest const& a, int a_levels, nest const& b, int b_levels,
                     std::int64_t distance) noexcept {
  if (distance >= a.extent(a_levels) || -distance >= b.extent(b_levels)) return true;
  std::int64_t const a_stride = a_levels > 0 ? a.at(a_levels - 1).stride : 0;
  std::int64_t const b_stride = b_levels > 0 ? b.at(b_levels - 1).stride : 0;
  if (b_stride > a_stride) return apart(b, b_levels, a, a_levels, -distance);
  if (a_stride == 0) return false;
  bool const alike = a_stride == b_stride;
  if (!alike && b.extent(b_levels) > a_stride) return false;
  // Of the steps of `a`, b can meet only the one before its begin and the next.
  std::int64_t const rest = (distance % a_stride + a_stride) % a_stride;
  int const b_inner = alike ? b_levels - 1 : b_levels;
  return apart(a, a_levels - 1, b, b_inner, rest) &&
         apart(a, a_levels - 1, b, b_inner, rest - a_stride);
}

/// Planes may not overlap each other.
constexpr problem check_apart(layout const& m) noexcept {
  std::array<plane const*, 5> const planes{&m.codes, &m.scales, &m.zeros, &m.tile_padding,
                                           &m.page_padding};
  if (m.tokens == 0) return {};
  for (std::size_t j = 1; j < planes.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      if (planes[i]->bytes == 0 || planes[j]->bytes == 0) continue;
      nest const a = nest_of(m, *planes[i], i >= 3);
      nest const b = nest_of(m, *planes[j], j >= 3);
      if (!apart(a, a.depth, b, b.depth, planes[j]->offset - planes[i]->offset)) {
        return {status::bad_stride, "two planes overlap: one begins at {}, the other at {}",
                planes[i]->offset, planes[j]->offset};
      }
    }
  }
  return {};
}

}  // namespace detail

/// First fault of a layout for a codec and a packing; names the offending numbers.
template <codec_type C, packing P = linear>
constexpr problem check(layout const& m) noexcept {
  constexpr codec_info c = info_of<C>();
  if (auto const p = detail::check_extents(m, c)) return p;
  if constexpr (!C::plain && requires { P::check(tile_shape{}); }) {
    if (auto const p = P::check({m.tile_tokens, m.head_dim, c.bits})) return p;
  }
  auto const bytes = detail::bytes_of_tile<P>(c, m.group, m.tile_tokens, m.head_dim);
  if (auto const p = detail::check_plane(m, m.codes, bytes.codes)) return p;
  if (auto const p = detail::check_plane(m, m.scales, bytes.scales)) return p;
  if (auto const p = detail::check_plane(m, m.zeros, bytes.zeros)) return p;
  if (auto const p = detail::check_parts(m, m.tile_padding, true)) return p;
  if (auto const p = detail::check_parts(m, m.page_padding, true)) return p;
  return detail::check_apart(m);
}

/// `check` as a status alone.
template <codec_type C, packing P = linear>
constexpr status validate(layout const& m) noexcept {
  return check<C, P>(m).code;
}

}  // namespace kvarts
