// SPDX-License-Identifier: Apache-2.0
/// @file
/// Pages of an engine's plain tensors to and from the coded memory of a tier, one layer's K or V at
/// a time: any codec, any strides, chosen by pairs of indices. The bytes are those of `encode` and
/// `decode`.
#pragma once

#include <kvarts/decode.hpp>
#include <kvarts/tier/index_pairs.hpp>
#include <kvarts/tier/threads.hpp>

#include <array>
#include <cstdint>

namespace kvarts::tier {

/// How pages move. Index i names tokens `i * unit_tokens` to `(i + 1) * unit_tokens - 1` of a pool:
/// token t of a pool with pages lies in page `t / page_tokens`. So a unit of the page's tokens
/// makes indices of pages, and a unit of 1 makes them slots of tokens.
struct page_moves {
  index_pairs pairs{};
  std::int64_t unit_tokens = 1;
  int threads = 1;
};

namespace detail {

/// Pages, or the whole where there are none, and tiles must hold whole units.
constexpr problem check_unit(layout const& m, std::int64_t unit) noexcept {
  if (unit < 1) return {status::bad_tokens, "an index names {} tokens", unit};
  if (m.page_tokens > 0 && m.page_tokens % unit != 0) {
    return {status::bad_page, "a page of {} tokens does not hold whole units of {} tokens",
            m.page_tokens, unit};
  }
  if (unit % m.tile_tokens != 0) {
    return {status::partial_group, "units of {} tokens would cut tiles of {} tokens", unit,
            m.tile_tokens};
  }
  return {};
}

/// Both ends of a move, apart from the pairs.
constexpr problem check_ends(layout const& coded, layout const& plain, std::int64_t unit) noexcept {
  if (plain.head_dim != coded.head_dim) {
    return {status::bad_head_dim, "head_dim is {} in the tensor and {} in the tier", plain.head_dim,
            coded.head_dim};
  }
  if (plain.heads != coded.heads) {
    return {status::bad_heads, "there are {} heads in the tensor and {} in the tier", plain.heads,
            coded.heads};
  }
  if (auto const p = check_unit(coded, unit)) return p;
  return check_unit(plain, unit);
}

/// How many units a pool holds.
constexpr std::int64_t units_of(layout const& m, std::int64_t unit) noexcept {
  return m.tokens / unit;
}

/// One unit of a pool: its page, and its tokens in there.
struct unit_place {
  std::int32_t page = 0;
  token_range tokens{};

  constexpr unit_place(layout const& m, std::int64_t index, std::int64_t unit) noexcept {
    std::int64_t first = index * unit;
    if (m.page_tokens > 0) {
      page = static_cast<std::int32_t>(first / m.page_tokens);
      first %= m.page_tokens;
    }
    tokens = {first, first + unit};
  }
  constexpr block_table table() const noexcept { return {&page, 1}; }
};

/// Rows of one unit of a tensor, from row 0 on. The place must outlive it.
template <class Byte>
constexpr tensor_view<Byte> rows_of(tensor_view<Byte> from, unit_place const& at) noexcept {
  from.data += at.tokens.begin * from.map.codes.tile_stride;
  from.table = at.table();
  return from;
}

/// Whether units have no padding in common.
constexpr bool owns_padding(layout const& m, std::int64_t unit) noexcept {
  return m.page_padding.bytes == 0 || (m.page_tokens > 0 && m.page_tokens == unit);
}

/// Pairs `begin..end-1` of a move.
struct pair_range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Encodes some pairs, unchecked; how many numbers were not finite.
template <codec_type Codec, packing Packing>
std::int64_t encode_units(view<Codec, std::byte, Packing> dst, source_view const& src,
                          page_moves const& moves, pair_range range,
                          kvarts::detail::prepared_transform const& transform) noexcept {
  std::int64_t nonfinite = 0;
  bool const padding = owns_padding(dst.map, moves.unit_tokens);
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    unit_place const to(dst.map, moves.pairs.dst(i), moves.unit_tokens);
    unit_place const from(src.map, moves.pairs.src(i), moves.unit_tokens);
    source_view const rows = rows_of(src, from);
    dst.table = to.table();
    for (int head = 0; head < dst.map.heads; ++head) {
      nonfinite += kvarts::detail::encode_head(dst, rows, head, to.tokens, transform);
    }
    if constexpr (!Codec::plain) kvarts::detail::clear_unowned_bits(dst, to.tokens);
    if (padding) kvarts::detail::clear_padding(dst, to.tokens);
  }
  return nonfinite;
}

/// Zeros in padding that units share, which one thread writes once the units are done.
template <codec_type Codec, packing Packing>
void clear_shared_padding(view<Codec, std::byte, Packing> dst, page_moves const& moves) noexcept {
  if (owns_padding(dst.map, moves.unit_tokens)) return;
  for (std::int64_t i = 0; i < moves.pairs.count(); ++i) {
    unit_place const to(dst.map, moves.pairs.dst(i), moves.unit_tokens);
    dst.table = to.table();
    kvarts::detail::clear_padding(dst, to.tokens);
  }
}

/// Decodes some pairs, unchecked.
template <codec_type Codec, packing Packing>
void decode_units(view<Codec, std::byte const, Packing> src, target_view const& dst,
                  page_moves const& moves, pair_range range,
                  kvarts::detail::prepared_transform const& transform) noexcept {
  alignas(64) float row[max_head_dim];
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    unit_place const to(dst.map, moves.pairs.dst(i), moves.unit_tokens);
    unit_place const from(src.map, moves.pairs.src(i), moves.unit_tokens);
    target_view const rows = rows_of(dst, to);
    src.table = from.table();
    for (int head = 0; head < src.map.heads; ++head) {
      for (std::int64_t t = from.tokens.begin; t < from.tokens.end; ++t) {
        kvarts::decode_row(src, head, t, row);
        transform.to_model(head, row);
        kvarts::detail::store_saturated(row, rows, head, t - from.tokens.begin);
      }
    }
  }
}

/// Threads that have something to do.
constexpr int parts_of(std::int64_t work, int threads) noexcept {
  return static_cast<int>(std::min<std::int64_t>(work, threads));
}

}  // namespace detail

/// First fault of moves into (`to_coded`) or out of coded memory: head_dim or heads that differ, a
/// unit that cuts pages or groups of tokens, an index outside of a pool, a destination that occurs
/// twice, a thread count.
inline problem check_moves(layout const& coded, layout const& plain, page_moves const& moves,
                           bool to_coded, transform_view const& transform = {}) noexcept {
  if (auto const p = check_threads(moves.threads)) return p;
  if (auto const p = detail::check_ends(coded, plain, moves.unit_tokens)) return p;
  if (auto const p = kvarts::check(transform, coded.heads, coded.head_dim)) return p;
  std::int64_t const host = detail::units_of(coded, moves.unit_tokens);
  std::int64_t const device = detail::units_of(plain, moves.unit_tokens);
  return check(moves.pairs, to_coded ? host : device, to_coded ? device : host);
}

/// Encodes pages (or tokens) of `src` into those of `dst` that the pairs name; the block tables of
/// both views are not read. On any status but `ok`, which `check_moves` explains, nothing was
/// written. The bytes do not depend on `threads`. Allocates nothing but the threads beyond the
/// caller's own; uses about 100 KB of stack on each.
template <codec_type Codec, packing Packing>
encode_result encode_pages(view<Codec, std::byte, Packing> dst, source_view src,
                           page_moves const& moves, transform_view const& transform = {}) noexcept {
  if (auto const p = check_moves(dst.map, src.map, moves, true, transform)) return {p.code};
  kvarts::detail::prepared_transform const prepared(transform, dst.map.head_dim);
  std::int64_t const count = moves.pairs.count();
  int const parts = detail::parts_of(count, moves.threads);
  std::array<std::int64_t, max_threads> nonfinite{};
  detail::for_each_part(parts, [&](int i) {
    detail::pair_range const range{detail::part_begin(count, parts, i),
                                   detail::part_begin(count, parts, i + 1)};
    nonfinite[static_cast<std::size_t>(i)] = detail::encode_units(dst, src, moves, range, prepared);
  });
  detail::clear_shared_padding(dst, moves);
  encode_result result;
  for (std::int64_t const n : nonfinite) result.nonfinite += n;
  return result;
}

/// Decodes pages (or tokens) of `src` into those of `dst`, back to model space. On any status but
/// `ok`, which `check_moves` explains, nothing was written. As `encode_pages` otherwise.
template <codec_type Codec, class Byte, packing Packing>
status decode_pages(view<Codec, Byte, Packing> src, target_view dst, page_moves const& moves,
                    transform_view const& transform = {}) noexcept {
  if (auto const p = check_moves(src.map, dst.map, moves, false, transform)) return p.code;
  kvarts::detail::prepared_transform const prepared(transform, src.map.head_dim);
  view<Codec, std::byte const, Packing> const from = src;
  std::int64_t const count = moves.pairs.count();
  int const parts = detail::parts_of(count, moves.threads);
  detail::for_each_part(parts, [&](int i) {
    detail::pair_range const range{detail::part_begin(count, parts, i),
                                   detail::part_begin(count, parts, i + 1)};
    detail::decode_units(from, dst, moves, range, prepared);
  });
  return status::ok;
}

}  // namespace kvarts::tier
