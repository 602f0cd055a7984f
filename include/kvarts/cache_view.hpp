// SPDX-License-Identifier: Apache-2.0
/// @file
/// What readers of a cache see: codes, 16-bit windows, block tables, lengths and transforms.
#pragma once

#include <kvarts/transform.hpp>
#include <kvarts/view.hpp>
#include <kvarts/window.hpp>

#include <cstdint>

namespace kvarts {

/// The 16-bit rows of one of K or V of one sequence, in model space. Position t < sink is row t of
/// `sinks`; a later one is row (t - sink) mod room of `recents`, a ring.
template <class Byte>
struct window_view {
  tensor_view<Byte> sinks{};
  tensor_view<Byte> recents{};

  /// The row of a position that the window holds.
  constexpr Byte* row(int head, std::int64_t position) const noexcept {
    std::int64_t const sink = sinks.map.tokens;
    if (position < sink) return sinks.row(head, position);
    return recents.row(head, (position - sink) % recents.map.tokens);
  }
};

/// The windows of many sequences: those of sequence 0, and the bytes from one sequence to the next.
template <class Byte>
struct window_planes {
  window_view<Byte> first{};
  std::int64_t sink_stride = 0;
  std::int64_t recent_stride = 0;

  constexpr window_view<Byte> sequence(std::int64_t index) const noexcept {
    window_view<Byte> w = first;
    w.sinks.data += index * sink_stride;
    w.recents.data += index * recent_stride;
    return w;
  }
};

/// One layer of one sequence for readers: codes in coded space, windows in model space, and where
/// the parts of keys and of values end (they leave the windows at different steps).
template <codec_type KeyCodec, codec_type ValueCodec, packing KeyPacking = linear,
          packing ValuePacking = linear>
struct sequence_view {
  view<KeyCodec, std::byte const, KeyPacking> keys{};
  view<ValueCodec, std::byte const, ValuePacking> values{};
  window_view<std::byte const> key_window{};
  window_view<std::byte const> value_window{};
  partition key_parts{};
  partition value_parts{};
  transform_view key_transform{};
  rotation value_rotation{};

  constexpr std::int64_t tokens() const noexcept { return key_parts.tokens; }
};

/// One layer of many sequences, as an engine or a kernel sees it. `block_tables` is `[sequences,
/// table_stride]` and indexes positions; pages without coded tokens need no entry (-1). `lengths`,
/// `frozen` (null: all are) and `transforms` (of keys) have one entry a sequence.
template <codec_type KeyCodec, codec_type ValueCodec, packing KeyPacking = linear,
          packing ValuePacking = linear>
struct cache_view {
  view<KeyCodec, std::byte const, KeyPacking> keys{};
  view<ValueCodec, std::byte const, ValuePacking> values{};
  window_planes<std::byte const> key_windows{};
  window_planes<std::byte const> value_windows{};
  windows window{};
  std::int32_t const* block_tables = nullptr;
  std::int64_t table_stride = 0;
  std::int32_t sequences = 0;
  std::int64_t const* lengths = nullptr;
  bool const* frozen = nullptr;
  transform_view const* transforms = nullptr;
  rotation value_rotation{};

  constexpr sequence_view<KeyCodec, ValueCodec, KeyPacking, ValuePacking> sequence(
      int index) const noexcept {
    block_table const table{block_tables + index * table_stride, table_stride};
    bool const codes = frozen == nullptr || frozen[index];
    int const key_step = eviction_step(KeyCodec::grouped_along, keys.map.group);
    int const value_step = eviction_step(ValueCodec::grouped_along, values.map.group);
    return {{keys.data, keys.map, table},
            {values.data, values.map, table},
            key_windows.sequence(index),
            value_windows.sequence(index),
            partition_after(lengths[index], window, key_step, codes),
            partition_after(lengths[index], window, value_step, codes),
            transforms[index],
            value_rotation};
  }
};

}  // namespace kvarts
