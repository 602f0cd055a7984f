// SPDX-License-Identifier: Apache-2.0
/// @file
/// How tokens enter a sequence and leave its windows: rows are rounded to 16 bits, stored in the
/// windows and coded from there, so the state depends on the tokens alone and not on how they were
/// fed.
#pragma once

#include <kvarts/cache_view.hpp>
#include <kvarts/encode.hpp>

#include <algorithm>
#include <cstdint>

namespace kvarts::detail {

/// Writable parts of one of K or V of a sequence.
template <codec_type Codec>
struct side {
  view<Codec> codes{};
  window_view<std::byte> window{};
  transform_view transform{};
  windows sizes{};

  int step() const noexcept { return eviction_step(Codec::grouped_along, codes.map.group); }
  /// Positions sink..coded_end-1 of a sequence of so many tokens are coded.
  std::int64_t coded_end(std::int64_t tokens, bool frozen) const noexcept {
    return std::max<std::int64_t>(partition_after(tokens, sizes, step(), frozen).coded_end,
                                  sizes.sink);
  }
};

/// Rows `from..from+count-1` of `rows` become positions `position..`, rounded to the window's type.
/// Returns how many inputs were not finite.
inline std::int64_t store_window_rows(window_view<std::byte> const& window, source_view const& rows,
                                      std::int64_t from, std::int64_t count,
                                      std::int64_t position) noexcept {
  float row[max_head_dim];
  std::int64_t nonfinite = 0;
  for (int head = 0; head < rows.map.heads; ++head) {
    for (std::int64_t i = 0; i < count; ++i) {
      nonfinite += load_finite(rows, head, from + i, row);
      store_saturated(row, rows.map.head_dim, window.recents.type, window.row(head, position + i));
    }
  }
  return nonfinite;
}

/// Rows of the ring from a position on, up to the ring's end.
inline source_view ring_rows(window_view<std::byte> const& window, std::int64_t position) noexcept {
  std::int64_t const room = window.recents.map.tokens;
  std::int64_t const slot = (position - window.sinks.map.tokens) % room;
  source_view rows = window.recents;
  rows.data += slot * rows.map.codes.tile_stride;
  rows.map.tokens = room - slot;
  return rows;
}

/// Codes positions begin..end-1 from the ring, in pieces that do not cross its end. The ring holds
/// whole groups, so no group is cut.
template <codec_type Codec>
status code_positions(side<Codec> const& s, std::int64_t begin, std::int64_t end) noexcept {
  while (begin < end) {
    source_view const rows = ring_rows(s.window, begin);
    std::int64_t const stop = std::min(end, begin + rows.map.tokens);
    auto const done = encode(s.codes, rows, {begin, stop}, s.transform);
    if (done.code != status::ok) return done.code;
    begin = stop;
  }
  return status::ok;
}

/// Appends all rows to one side of a sequence of `tokens` tokens, piece by piece, so that no row
/// that is still needed is overwritten in the ring.
template <codec_type Codec>
encode_result append_side(side<Codec> const& s, source_view const& rows, std::int64_t tokens,
                          bool frozen) noexcept {
  encode_result result;
  std::int64_t const room = s.window.recents.map.tokens;
  std::int64_t const count = rows.map.tokens;
  for (std::int64_t done = 0; done < count;) {
    std::int64_t const position = tokens + done;
    std::int64_t const coded = s.coded_end(position, frozen);
    std::int64_t const held = std::max<std::int64_t>(position - coded, 0);
    std::int64_t const piece = std::min(count - done, room - held);
    if (piece <= 0) return {status::no_window_room, result.nonfinite};
    result.nonfinite += store_window_rows(s.window, rows, done, piece, position);
    done += piece;
    result.code = code_positions(s, coded, s.coded_end(tokens + done, frozen));
    if (result.code != status::ok) return result;
  }
  return result;
}

}  // namespace kvarts::detail
