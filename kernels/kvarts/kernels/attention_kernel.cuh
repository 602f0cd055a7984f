// SPDX-License-Identifier: Apache-2.0
/// @file
/// The attention kernel: thread blocks walk equal spans of all work, piece by piece.
#pragma once

#include <kvarts/kernels/attention_block.cuh>
#include <kvarts/kernels/attention_merge.cuh>

namespace kvarts::kernels {

/// How the blocks of a segment are read: codes through the ring, or plain rows.
template <class Shape, class Segment>
struct segment_kind {
  static constexpr bool stages_keys = Segment::keys_coded && !Shape::key_format::plain;
  static constexpr bool stages_values = Segment::values_coded && !Shape::value_format::plain;
  static constexpr bool sinks = Segment::sinks;
  /// A warp has a block or two where windows take part: queries need not lie in registers beside
  /// rows.
  static constexpr bool short_run = !Segment::keys_coded || !Segment::values_coded;
  using keys =
      typename std::conditional_t<stages_keys, std::type_identity<coded_keys<Shape>>,
                                  std::type_identity<plain_keys<Shape, Segment::keys_coded>>>::type;
  using values = typename std::conditional_t<
      stages_values, std::type_identity<coded_values<Shape>>,
      std::type_identity<plain_values<Shape, Segment::values_coded>>>::type;
};

/// One segment of a piece, added to the piece's state. A segment begins with fresh sums, so that
/// what it needs to begin with and what others have summed up do not compete for registers.
template <class Shape, int Index>
KVARTS_DEVICE void attend_segment(attention_arguments const& a, attention_shared<Shape>& shared,
                                  level_tables tables, std::byte* rings) {
  using part = segment<Shape, Index>;
  using kind = segment_kind<Shape, part>;
  segment_work const& w = shared.segment[Index];
  if (w.first_block >= w.end_block) return;
  online_softmax<Shape::tiles, Shape::block / 16> softmax;
  typename kind::values values;
  attend<Shape, kind>(a, shared, tables, w, rings, softmax, values);
  softmax.finish();
  values.finish(a.value_levels.lowest);
  for (int turn = 0; turn < attention_warps; ++turn) {
    if (warp_here() == turn) {
      add_warp<Shape, part::values_coded>(shared, softmax, values, place_of(lane_here()));
    }
    block_barrier();
  }
}

/// All segments of a piece. No lambda: a compiler that does not inline a large one copies the
/// arguments to local memory.
template <class Shape, int... Index>
KVARTS_DEVICE void attend_segments(attention_arguments const& a, attention_shared<Shape>& shared,
                                   level_tables tables, std::byte* rings,
                                   std::integer_sequence<int, Index...>) {
  (attend_segment<Shape, Index>(a, shared, tables, rings), ...);
}

/// Whether operands take more registers: scales that change with the channels of a token multiply
/// them anew for each block (KIVI), and plain numbers in bfloat16 meet two bfloat16s each.
template <class Shape>
inline constexpr bool large_operands =
    Shape::key_format::along == axis::token || Shape::value_format::along == axis::channel ||
    std::is_same_v<typename Shape::key_format, plain_format<bfloat16>> ||
    std::is_same_v<typename Shape::value_format, plain_format<bfloat16>> ||
    std::is_same_v<typename Shape::window_type, bfloat16>;

/// Thread blocks that share a multiprocessor: as many as leave the registers that a shape needs.
template <class Shape>
inline constexpr int attention_blocks = [] {
  if (Shape::tiles > 1 || Shape::key_dim > 128 || Shape::value_dim > 128) return 2;
  return large_operands<Shape> ? 3 : 4;
}();

template <class Shape>
KVARTS_KERNEL(attention_threads, attention_blocks<Shape>)
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
  block_ring<Shape>::prepare(shared);
  shared.work.begin(a, shared.unit_sums);
  while (begin_piece<Shape>(a, shared)) {
    attend_segments(a, shared, tables, rings, std::make_integer_sequence<int, segments>{});
    end_piece<Shape>(a, shared);
  }
}

}  // namespace kvarts::kernels
