// SPDX-License-Identifier: Apache-2.0
/// @file
/// The attention kernel: thread blocks walk equal spans of all work, piece by piece.
#pragma once

#include <kvarts/kernels/attention_block.cuh>
#include <kvarts/kernels/attention_merge.cuh>

namespace kvarts::kernels {

/// Blocks of a segment in a piece, and those of this warp.
template <class Segment>
KVARTS_DEVICE segment_work find_segment_work(sequence_parts const& parts, attention_piece const& p,
                                             std::int64_t unit, int block) {
  token_span const span = Segment::find(parts);
  std::int64_t const count = Segment::blocks(span);
  std::int64_t const first = span.begin / block;
  // Block i belongs to the piece that has its first unit.
  std::int64_t const begin = larger(p.begin - unit + Segment::weight - 1, 0) / Segment::weight;
  std::int64_t const end =
      smaller(count, larger(p.end - unit + Segment::weight - 1, 0) / Segment::weight);
  return {span,
          {larger(span.begin, parts.all.begin), smaller(span.end, parts.all.end)},
          first + begin + warp_index(),
          first + end};
}

/// The segments of a piece whose values are coded, or those whose values are in windows.
template <class Shape, bool Coded>
KVARTS_DEVICE void attend_phase(attention_arguments const& a, attention_piece const& p,
                                sequence_parts const& parts, attention_shared<Shape>& shared,
                                level_tables tables, block_ring<Shape>& ring) {
  constexpr bool stages_values = Coded && !Shape::value_format::plain;
  using values_type = std::conditional_t<stages_values, std::type_identity<coded_values<Shape>>,
                                         std::type_identity<plain_values<Shape, Coded>>>::type;
  lane_place const lane = place_of_lane();
  online_softmax<Shape::tiles, Shape::block / 16> softmax;
  values_type values;
  std::int64_t unit = 0;
  bool any = false;
  unrolled<segments>([&](auto i) {
    using part = segment<Shape, i>;
    segment_work const w = find_segment_work<part>(parts, p, unit, Shape::block);
    unit += part::weight * part::blocks(w.span);
    if constexpr (part::values_coded == Coded) {
      if (w.first - warp_index() < w.end) {
        any = true;
        constexpr bool stages_keys = part::keys_coded && !Shape::key_format::plain;
        using keys_type =
            std::conditional_t<stages_keys, std::type_identity<coded_keys<Shape>>,
                               std::type_identity<plain_keys<Shape, part::keys_coded>>>::type;
        attend<Shape, keys_type, values_type, stages_keys, stages_values>(
            a, p, shared, tables, w, ring, softmax, values, lane);
      }
    }
  });
  if (!any) return;  // the same for all warps
  softmax.finish();
  values.finish(a.value_levels.lowest);
  for (int w = 0; w < attention_warps; ++w) {
    if (warp_index() == w) {
      add_warp<Shape>(shared, Coded ? shared.coded_sums : shared.plain_sums, softmax, values, lane);
    }
    block_barrier();
  }
}

/// Thread blocks that share a multiprocessor.
template <class Shape>
inline constexpr int attention_blocks =
    Shape::tiles == 1 && Shape::key_dim <= 128 && Shape::value_dim <= 128 ? 4 : 2;

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
  work_span<Shape> span(a, shared.unit_sums);
  attention_piece piece;
  while (span.next(a, piece)) {
    begin_piece<Shape>(a, piece, shared);
    sequence_parts const parts = parts_of(a, piece.sequence);
    attend_phase<Shape, false>(a, piece, parts, shared, tables, ring);
    attend_phase<Shape, true>(a, piece, parts, shared, tables, ring);
    end_piece<Shape>(a, piece, span, shared);
  }
}

}  // namespace kvarts::kernels
