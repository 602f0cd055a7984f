// SPDX-License-Identifier: Apache-2.0
/// @file
/// Where the plain rows of a block lie: in a window, or in the codes of a plain codec.
#pragma once

#include <kvarts/kernels/attention_work.cuh>

namespace kvarts::kernels {

/// Rows of a block of one head in a window, whose tensors have one token a tile: in the sinks, or
/// in the ring of recent tokens.
class window_rows {
 public:
  /// `first` is the first token of the block that is in the window.
  KVARTS_DEVICE window_rows(window_planes<std::byte const> const& windows, bool sinks,
                            attention_piece const& p, std::int32_t first)
      : map_(sinks ? windows.first.sinks.map : windows.first.recents.map), first_(first) {
    std::int64_t const stride = sinks ? windows.sink_stride : windows.recent_stride;
    data_ = (sinks ? windows.first.sinks.data : windows.first.recents.data) + p.sequence * stride +
            map_.codes.at(0, 0, p.head);
    auto const behind_sinks = static_cast<std::uint32_t>(
        first - static_cast<std::int32_t>(windows.first.sinks.map.tokens));
    auto const slots = static_cast<std::uint32_t>(map_.tokens);
    slot_ = sinks ? first : static_cast<std::int32_t>(behind_sinks % slots);
  }

  KVARTS_DEVICE std::byte const* find(std::int32_t token) const {
    auto const slots = static_cast<std::int32_t>(map_.tokens);
    std::int32_t const ahead = slot_ + (token - first_);
    return data_ + (ahead < slots ? ahead : ahead - slots) * map_.codes.tile_stride;
  }

 private:
  layout const& map_;
  std::byte const* data_;
  std::int32_t first_;
  std::int32_t slot_;
};

/// Rows of a block of one head in the codes of a plain codec.
class coded_rows {
 public:
  KVARTS_DEVICE coded_rows(block_map const& codes, attention_piece const& p, int row_bytes)
      : tiles_(codes, p.sequence, p.head), row_bytes_(row_bytes) {}

  KVARTS_DEVICE std::byte const* find(std::int32_t token) const {
    tile_place const tile = tiles_.find(token);
    return tile.codes + std::int64_t{tile.slot} * row_bytes_;
  }

 private:
  head_tiles tiles_;
  int row_bytes_;
};

/// Calls `f(find)`, where `find(token)` is the row of a token of the block, null outside the
/// segment.
template <bool Sinks, bool Coded, class F>
KVARTS_DEVICE void with_rows(block_map const& codes, window_planes<std::byte const> const& windows,
                             attention_piece const& p, segment_work const& w,
                             std::int32_t first_token, int row_bytes, F&& f) {
  auto const with = [&](auto const& rows) {
    f([&](std::int32_t token) { return w.has(token) ? rows.find(token) : nullptr; });
  };
  if constexpr (Coded) {
    with(coded_rows(codes, p, row_bytes));
  } else {
    with(window_rows(windows, Sinks, p, first_token > w.begin ? first_token : w.begin));
  }
}

}  // namespace kvarts::kernels
