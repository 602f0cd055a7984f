// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which rows of a plain tensor are which tokens of which sequence, and how warps share them.
#pragma once

#include <kvarts/cuda/rows.hpp>
#include <kvarts/kernels/unit_memory.cuh>
#include <kvarts/view.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kvarts::kernels {

/// The tokens of one sequence in a launch, and the row of the first.
struct sequence_span {
  int sequence = 0;
  token_range tokens{};
  std::int64_t first_row = 0;
};

/// A part of a span: the tokens of one unit, of `unit` tokens from a multiple of it on.
struct span_unit {
  sequence_span span{};
  std::int64_t first = 0;    ///< the unit's first token, maybe before the span
  token_range tokens{};      ///< those in the span; empty where there is nothing to do
  std::int64_t outside = 0;  ///< rows of a span that begins below 0, told with its first item
};

/// Divides the rows of a launch into units. Unit k of sequence i is item `first_row(i) / unit + 2 i
/// + k`: a sequence of n rows touches at most n / unit + 2 units, so items of two sequences never
/// coincide, and the sequence of an item is found without a table.
class row_division {
 public:
  constexpr row_division(cuda::rows const& r, int unit) noexcept : rows_(r), unit_(unit) {}

  /// Items of a tensor of so many rows.
  constexpr std::int64_t items(std::int64_t tensor_rows) const noexcept {
    if (rows_.sequences == 0) return 0;
    std::int64_t const rows =
        rows_.cu_seqlens != nullptr ? tensor_rows : rows_.sequences * rows_.max_tokens;
    return rows / unit_ + 2 * std::int64_t{rows_.sequences};
  }

  KVARTS_DEVICE span_unit find(std::int64_t item) const {
    span_unit u;
    u.span = span(sequence_of(item));
    token_range const all = u.span.tokens;
    std::int64_t const k = item - first_item(u.span.sequence);
    if (all.begin < 0) {
      u.outside = k == 0 ? std::max<std::int64_t>(all.size(), 0) : 0;
      return u;
    }
    u.first = (all.begin / unit_ + k) * unit_;
    u.tokens = {std::max(all.begin, u.first), std::min(all.end, u.first + unit_)};
    return u;
  }

 private:
  KVARTS_DEVICE std::int64_t first_row(int sequence) const {
    if (rows_.cu_seqlens != nullptr) return rows_.cu_seqlens[sequence];
    return sequence * rows_.max_tokens;
  }

  KVARTS_DEVICE std::int64_t first_item(int sequence) const {
    return first_row(sequence) / unit_ + 2 * std::int64_t{sequence};
  }

  KVARTS_DEVICE sequence_span span(int sequence) const {
    sequence_span s;
    s.sequence = sequence;
    s.first_row = first_row(sequence);
    s.tokens.begin = rows_.begins != nullptr ? rows_.begins[sequence] : rows_.begin;
    std::int64_t rows = rows_.max_tokens;
    if (rows_.cu_seqlens != nullptr) rows = first_row(sequence + 1) - s.first_row;
    s.tokens.end = s.tokens.begin + rows;
    if (rows_.cu_seqlens == nullptr && rows_.ends != nullptr) {
      s.tokens.end = std::min(s.tokens.end, rows_.ends[sequence]);
    }
    return s;
  }

  /// The last sequence whose first item is not above `item`; the lanes try 32 places at a time.
  KVARTS_DEVICE int sequence_of(std::int64_t item) const {
    int low = 0;
    int high = rows_.sequences;  // the first that is known to begin above it, or the end
    while (high - low > 1) {
      int const step = (high - low + warp_lanes - 1) / warp_lanes;
      int const tried = low + lane_index() * step;
      std::uint32_t const below = ballot(tried < high && first_item(tried) <= item);
      int const count = std::popcount(below);
      low += (count - 1) * step;
      high = std::min(high, low + step);
    }
    return low;
  }

  cuda::rows rows_;
  int unit_;
};

/// Finds where a token lies: false when it is outside the layout, or its page outside the table or
/// the pool. `data` is that of sequence 0.
template <class Byte>
KVARTS_DEVICE bool locate_token(layout const& m, cuda::batch const& b, Byte* data, int sequence,
                                std::int64_t token, unit_place<Byte>& place) {
  place.data = data;
  place.at = {};
  if (m.page_tokens > 0) {
    std::int64_t const entry = token / m.page_tokens;
    if (entry >= b.table_stride) return false;
    place.at.page = b.block_tables[sequence * b.table_stride + entry];
    if (place.at.page < 0 || place.at.page >= m.pages()) return false;
    token %= m.page_tokens;
  } else {
    if (token >= m.tokens) return false;
    place.data += sequence * b.sequence_stride;
  }
  place.at.tile = token / m.tile_tokens;
  place.at.slot = static_cast<int>(token % m.tile_tokens);
  return true;
}

/// The same for a unit: all of its tokens that are asked for must be inside.
template <class Byte>
KVARTS_DEVICE bool locate_unit(layout const& m, cuda::batch const& b, Byte* data,
                               span_unit const& u, unit_place<Byte>& place) {
  return (m.page_tokens > 0 || u.tokens.end <= m.tokens) &&
         locate_token(m, b, data, u.span.sequence, u.first, place);
}

}  // namespace kvarts::kernels
