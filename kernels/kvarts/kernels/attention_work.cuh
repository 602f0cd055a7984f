// SPDX-License-Identifier: Apache-2.0
/// @file
/// What attention has to do, cut into equal spans on the device: no plan of the host depends on
/// lengths, so graphs replay while sequences grow.
#pragma once

#include <kvarts/cuda/attention.hpp>
#include <kvarts/kernels/blocks.cuh>
#include <kvarts/kernels/unroll.cuh>

namespace kvarts::kernels {

/// Arguments of attention.
struct attention_arguments {
  block_map keys;
  block_map values;
  level_values key_levels;
  level_values value_levels;
  window_planes<std::byte const> key_windows;
  window_planes<std::byte const> value_windows;
  windows window;
  std::int32_t key_step;
  std::int32_t value_step;
  std::int32_t sequences;
  std::int32_t heads;
  std::int32_t shared;         ///< query heads a KV head
  std::int32_t column_groups;  ///< groups of 8 * Tiles columns of a KV head
  std::int64_t const* lengths;
  bool const* frozen;
  transform_view const* transforms;
  rotation value_rotation;
  cuda::attention_request request;
  float* parts;             ///< [2 * thread blocks], `part_floats` each
  std::uint32_t* counters;  ///< [sequences, heads, column_groups], zeros between launches
};

/// Where the parts of a sequence end, which positions any query of the launch sees, and which all
/// of them see.
struct sequence_parts {
  partition keys;
  partition values;
  token_span some;
  token_span all;
};

KVARTS_DEVICE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
KVARTS_DEVICE std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

/// What the query at index `token` of the launch sees, but for its tree mask.
KVARTS_DEVICE token_span visible_to(cuda::attention_request const& r, std::int64_t length,
                                    int token) {
  std::int64_t const position = length - r.query_tokens + token;
  std::int64_t const begin = r.sliding_window > 0 ? position + 1 - r.sliding_window : 0;
  std::int64_t const end = r.tree_masks != nullptr ? length : position + 1;
  return {larger(larger(begin, r.positions.begin), 0), smaller(end, r.positions.end)};
}

KVARTS_DEVICE sequence_parts parts_of(attention_arguments const& a, int sequence) {
  std::int64_t const length = a.lengths[sequence];
  bool const codes = a.frozen == nullptr || a.frozen[sequence];
  token_span const first = visible_to(a.request, length, 0);
  token_span const last = visible_to(a.request, length, a.request.query_tokens - 1);
  std::int64_t const tree =
      a.request.tree_masks != nullptr ? length - a.request.tree_tokens : length;
  return {partition_after(length, a.window, a.key_step, codes),
          partition_after(length, a.window, a.value_step, codes),
          {first.begin, last.end},
          {last.begin, smaller(first.end, tree)}};
}

/// A run of positions whose keys are all in codes or all in windows, and whose values are. The
/// first three have values in windows.
template <class Shape, int Index>
struct segment {
  static constexpr bool keys_coded = Index == 1 || Index == 4;
  static constexpr bool values_coded = Index >= 3;
  static constexpr bool sinks = Index == 0;
  /// What a block costs: windows are several times the bytes of codes.
  static constexpr int weight =
      (keys_coded && values_coded) || (Shape::key_format::plain && Shape::value_format::plain) ? 1
                                                                                               : 4;

  KVARTS_DEVICE static token_span find(sequence_parts const& p) {
    token_span s{};
    if constexpr (Index == 0) s = {0, p.keys.sinks};
    if constexpr (Index == 1) s = {p.values.coded_end, p.keys.coded_end};
    if constexpr (Index == 2) s = {larger(p.keys.coded_end, p.values.coded_end), p.keys.tokens};
    if constexpr (Index == 3) s = {p.keys.coded_end, p.values.coded_end};
    if constexpr (Index == 4) s = {p.keys.sinks, smaller(p.keys.coded_end, p.values.coded_end)};
    return {larger(s.begin, p.some.begin), smaller(s.end, p.some.end)};
  }

  KVARTS_DEVICE static std::int64_t blocks(token_span s) {
    if (s.end <= s.begin) return 0;
    return (s.end + Shape::block - 1) / Shape::block - s.begin / Shape::block;
  }
};

inline constexpr int segments = 5;

/// Units of work of one (sequence, KV head, column group); an empty one has its output to write.
template <class Shape>
KVARTS_DEVICE std::int64_t units_of(sequence_parts const& p) {
  std::int64_t units = 0;
  unrolled<segments>([&](auto i) {
    using part = segment<Shape, i>;
    units += part::weight * part::blocks(part::find(p));
  });
  return larger(units, 1);
}

/// A piece of one (sequence, KV head, column group): units `begin..end-1` of `units`.
struct attention_piece {
  int sequence = 0;
  int head = 0;
  int group = 0;
  std::int64_t units = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t first_unit = 0;  ///< of this (sequence, KV head, column group) among all
};

/// One segment of a piece.
struct segment_work {
  std::int32_t begin;  ///< tokens of the segment that any query sees
  std::int32_t end;
  std::int32_t first_block;  ///< blocks of the piece
  std::int32_t end_block;
  std::int32_t first_whole;  ///< blocks where every query sees every token, all of the segment
  std::int32_t end_whole;

  KVARTS_DEVICE bool has(std::int32_t token) const { return token >= begin && token < end; }
};

/// Cuts a piece into its segments; a block belongs to the piece that has its first unit.
template <class Shape>
KVARTS_DEVICE void cut_piece(sequence_parts const& parts, attention_piece const& piece,
                             segment_work (&to)[segments]) {
  std::int64_t unit = 0;
  unrolled<segments>([&](auto i) {
    using part = segment<Shape, i>;
    token_span const span = part::find(parts);
    std::int64_t const count = part::blocks(span);
    std::int64_t const first = span.begin / Shape::block;
    auto const block_at = [&](std::int64_t u) {
      return first + smaller(count, larger(u - unit + part::weight - 1, 0) / part::weight);
    };
    auto const narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
    std::int64_t const whole = larger(span.begin, parts.all.begin);
    to[i] = {narrow(span.begin),
             narrow(span.end),
             narrow(block_at(piece.begin)),
             narrow(block_at(piece.end)),
             narrow((whole + Shape::block - 1) / Shape::block),
             narrow(smaller(span.end, parts.all.end) / Shape::block)};
    unit += part::weight * count;
  });
}

/// The span of all work that a thread block takes, piece by piece. In shared memory, like the piece
/// itself: what all threads share does not take registers of each.
template <class Shape>
struct work_span {
  std::int64_t total;
  std::int64_t blocks;  ///< that take part
  std::int64_t unit;    ///< the next one
  std::int64_t end;
  std::int64_t first_unit;  ///< of `sequence`
  std::int32_t sequence;

  /// `sums` is room for one number a thread. All threads of the block call this.
  KVARTS_DEVICE void begin(attention_arguments const& a, std::int64_t* sums) {
    int const each = (a.sequences + block_threads() - 1) / block_threads();
    int const first = thread_index() * each;
    std::int64_t sum = 0;
    for (int s = first; s < first + each && s < a.sequences; ++s) sum += units(a, s);
    sums[thread_index()] = sum;
    block_barrier();
    if (thread_index() != 0) return;
    total = 0;
    for (int t = 0; t < block_threads(); ++t) total += sums[t];
    // Each block that takes part has at least one unit, so that parts can be counted.
    blocks = smaller(grid_blocks(), total);
    unit = smaller(total * block_index() / blocks, total);
    end = smaller(total * (block_index() + 1) / blocks, total);
    first_unit = 0;
    sequence = 0;
    for (int t = 0; t < block_threads() && first_unit + sums[t] <= unit; ++t) {
      first_unit += sums[t];
      sequence += each;
    }
  }

  /// The next piece, which is empty at the end. One thread calls this.
  KVARTS_DEVICE attention_piece next(attention_arguments const& a) {
    if (unit >= end) return {};
    std::int64_t all = units(a, sequence);
    while (first_unit + all <= unit) {
      first_unit += all;
      all = units(a, ++sequence);
    }
    std::int64_t const each = all / (std::int64_t{a.heads} * a.column_groups);
    std::int64_t const item = (unit - first_unit) / each;
    attention_piece piece;
    piece.sequence = sequence;
    piece.head = static_cast<int>(item / a.column_groups);
    piece.group = static_cast<int>(item % a.column_groups);
    piece.units = each;
    piece.first_unit = first_unit + item * each;
    piece.begin = unit - piece.first_unit;
    piece.end = smaller(each, end - piece.first_unit);
    unit = piece.first_unit + piece.end;
    return piece;
  }

  /// The thread block that has a unit.
  KVARTS_DEVICE int block_of(std::int64_t u) const {
    return static_cast<int>(((u + 1) * blocks - 1) / total);
  }

 private:
  KVARTS_DEVICE static std::int64_t units(attention_arguments const& a, int s) {
    return units_of<Shape>(parts_of(a, s)) * a.heads * a.column_groups;
  }
};

}  // namespace kvarts::kernels
