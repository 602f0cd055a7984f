// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a host tier stores as one piece: a record of one token or of a page, of one layer of K or
/// of V, and where the parts lie inside of it.
#pragma once

#include <kvarts/make_layout.hpp>
#include <kvarts/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvarts::tier {

/// How many tokens a record holds.
enum class record_kind : std::uint8_t {
  row,   ///< one; codecs grouped along tokens have none of these
  page,  ///< a whole page: padded once, so that small records do not pay for their alignment
};

/// `head_dim` channels of every head in one codec. A `group` of 0 is the codec's own length, or 32
/// where the codec leaves it open.
struct segment {
  codec_info codec{};
  std::int32_t head_dim = 0;
  std::int32_t group = 0;
};

template <codec_type C>
constexpr segment segment_of(int head_dim, int group = 0) noexcept {
  return {info_of<C>(), head_dim, group};
}

/// What one layer keeps of K (or of V) a token: usually one segment; MLA keeps a coded latent and
/// 16-bit RoPE channels behind it as K, and nothing as V, which aliases the latent.
struct row_segments {
  static constexpr int most = 2;

  std::array<segment, most> segments{};
  std::int32_t count = 0;

  constexpr row_segments() noexcept = default;
  constexpr row_segments(segment const& whole) noexcept : segments{whole}, count(1) {}
  constexpr row_segments(segment const& prefix, segment const& suffix) noexcept
      : segments{prefix, suffix}, count(2) {}

  constexpr segment const& operator[](int i) const noexcept {
    return segments[static_cast<std::size_t>(i)];
  }
};

/// Extents of a record. `head_order` says what comes first in a page: with `head_major` a head
/// group's codes are one run of bytes, and so are its scales.
struct record_shape {
  std::int32_t heads = 0;
  std::int32_t tokens = 0;
  std::int32_t alignment = 1;
  order head_order = order::head_major;
};

namespace detail {

using kvarts::detail::bytes_of_tile;
using kvarts::detail::tile_bytes;

constexpr int group_of(segment const& s) noexcept {
  return kvarts::detail::group_or_default(s.codec, s.group);
}

/// Rows are coded by themselves; groups along tokens are the smallest tile that they allow.
constexpr int tile_tokens_of(segment const& s) noexcept {
  return s.codec.grouped_along == axis::token ? group_of(s) : 1;
}

constexpr tile_bytes tile_bytes_of(segment const& s) noexcept {
  return bytes_of_tile<linear>(s.codec, group_of(s), tile_tokens_of(s), s.head_dim);
}

/// Bytes of one segment's codes, scales and zero-points in a record.
constexpr tile_bytes segment_bytes(segment const& s, record_shape const& r) noexcept {
  tile_bytes const one = tile_bytes_of(s);
  std::int64_t const tiles = std::int64_t{r.heads} * (r.tokens / tile_tokens_of(s));
  return {tiles * one.codes, tiles * one.scales, tiles * one.zeros};
}

/// The same of the first `count` segments together.
constexpr tile_bytes segment_bytes(row_segments const& rows, int count,
                                   record_shape const& r) noexcept {
  tile_bytes sum;
  for (int i = 0; i < count; ++i) {
    tile_bytes const one = segment_bytes(rows[i], r);
    sum.codes += one.codes;
    sum.scales += one.scales;
    sum.zeros += one.zeros;
  }
  return sum;
}

/// Where the parts of segment `i` begin in a record.
constexpr tile_bytes segment_offsets(row_segments const& rows, int i,
                                     record_shape const& r) noexcept {
  tile_bytes const all = segment_bytes(rows, rows.count, r);
  tile_bytes const before = segment_bytes(rows, i, r);
  return {before.codes, all.codes + before.scales, all.codes + all.scales + before.zeros};
}

}  // namespace detail

/// Bytes of a record without its padding: `[codes of all segments][scales][zero-points]`, codes in
/// the `linear` packing, each row's (or tile's) from a byte of its own.
constexpr std::int64_t used_bytes(row_segments const& rows, record_shape const& r) noexcept {
  auto const all = detail::segment_bytes(rows, rows.count, r);
  return all.codes + all.scales + all.zeros;
}

/// Bytes of a record; zeros fill it up to its alignment. INT8 rows of 8 heads of 128 at 128 are
/// HiQCache's records of 1152 bytes.
constexpr std::int64_t record_bytes(row_segments const& rows, record_shape const& r) noexcept {
  return round_up(used_bytes(rows, r), r.alignment);
}

}  // namespace kvarts::tier
