// SPDX-License-Identifier: Apache-2.0
/// @file
/// The attention kernel: thread blocks walk equal spans of all work, piece by piece.
#pragma once

#include <kvarts/kernels/attention_block.cuh>
#include <kvarts/kernels/attention_merge.cuh>

namespace kvarts::kernels {

/// Blocks of a segment in a piece, those of this warp. `unit` is the segment's first.
template <class Shape, class Segment>
KVARTS_DEVICE segment_work find_segment_work(attention_shared<Shape> const& shared,
                                             std::int64_t unit) {
  token_span const span = Segment::find(shared.parts);
  std::int64_t const count = Segment::blocks(span);
  std::int64_t const first = span.begin / Shape::block;
  // A block belongs to the piece that has its first unit.
  auto const block_at = [&](std::int64_t u) {
    return smaller(count, larger(u - unit + Segment::weight - 1, 0) / Segment::weight);
  };
  std::int64_t const whole = larger(span.begin, shared.parts.all.begin);
  return {static_cast<std::int32_t>(first + block_at(shared.piece.begin)) + warp_index(),
          static_cast<std::int32_t>(first + block_at(shared.piece.end)),
          static_cast<std::int32_t>((whole + Shape::block - 1) / Shape::block),
          static_cast<std::int32_t>(smaller(span.end, shared.parts.all.end) / Shape::block)};
}

/// How the blocks of a segment are read: codes through the ring, or plain rows.
template <class Shape, class Segment>
struct segment_kind {
  static constexpr bool stages_keys = Segment::keys_coded && !Shape::key_format::plain;
  static constexpr bool stages_values = Segment::values_coded && !Shape::value_format::plain;
  using keys =
      typename std::conditional_t<stages_keys, std::type_identity<coded_keys<Shape>>,
                                  std::type_identity<plain_keys<Shape, Segment::keys_coded>>>::type;
  using values = typename std::conditional_t<
      stages_values, std::type_identity<coded_values<Shape>>,
      std::type_identity<plain_values<Shape, Segment::values_coded>>>::type;
};

/// One segment of a piece, added to the piece's state; returns the unit behind the segment, whose
/// first is `unit`. A segment begins with fresh sums, so that what it needs to begin with and what
/// others have summed up do not compete for registers.
template <class Shape, int Index>
KVARTS_DEVICE std::int64_t attend_segment(attention_arguments const& a,
                                          attention_shared<Shape>& shared, level_tables tables,
                                          block_ring<Shape>& ring, std::int64_t unit) {
  using part = segment<Shape, Index>;
  using kind = segment_kind<Shape, part>;
  segment_work const w = find_segment_work<Shape, part>(shared, unit);
  if (w.first - warp_index() < w.end) {  // the same for all warps
    online_softmax<Shape::tiles, Shape::block / 16> softmax;
    typename kind::values values;
    attend<Shape, part, kind>(a, shared, tables, w, ring, softmax, values);
    softmax.finish();
    values.finish(a.value_levels.lowest);
    for (int turn = 0; turn < attention_warps; ++turn) {
      if (warp_index() == turn) {
        add_warp<Shape>(shared, part::values_coded ? shared.coded_sums : shared.plain_sums, softmax,
                        values, place_of_lane());
      }
      block_barrier();
    }
  }
  return unit + part::weight * part::blocks(part::find(shared.parts));
}

/// Thread blocks that share a multiprocessor.
template <class Shape>
inline constexpr int attention_blocks =
    Shape::tiles == 1 && Shape::key_dim <= 128 && Shape::value_dim <= 128 ? 3 : 2;

template <class Shape>
KVARTS_KERNEL(attention_warps* warp_lanes, attention_blocks<Shape>)
attention_kernel(attention_arguments a) {
  auto& shared = *reinterpret_cast<attention_shared<Shape>*>(shared_memory());
  auto* const key_table =
      reinterpret_cast<std::uint32_t*>(shared_memory() + sizeof(attention_shared<Shape>));
  auto* const value_table = key_table + table_bytes<typename Shape::key_format> / 4;
  std::byte* const rings =
      reinterpret_cast<std::byte*>(value_table) + table_bytes<typename Shape::value_format>;
  fields_of<typename Shape::key_format>::prepare(key_table, a.key_levels);
  fields_of<typename Shape::value_format>::prepare(value_table, a.value_levels);
  level_tables const tables{key_table, value_table};
  block_ring<Shape> ring(rings, shared, a.stages);
  shared.work.begin(a, shared.unit_sums);
  while (begin_piece<Shape>(a, shared)) {
    std::int64_t unit = 0;
    unrolled<segments>(
        [&](auto i) { unit = attend_segment<Shape, i>(a, shared, tables, ring, unit); });
    end_piece<Shape>(a, shared);
  }
}

}  // namespace kvarts::kernels
