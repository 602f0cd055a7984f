// SPDX-License-Identifier: Apache-2.0
/// @file
/// The shared memory of attention, and the queries of a piece in it: plain for windows, folded for
/// codes.
#pragma once

#include <kvarts/kernels/attention_copies.cuh>
#include <kvarts/kernels/columns.cuh>
#include <kvarts/kernels/fields.cuh>
#include <kvarts/kernels/here.cuh>
#include <kvarts/kernels/warp_row.cuh>

namespace kvarts::kernels {

inline constexpr int attention_warps = 4;
inline constexpr int attention_threads = attention_warps * warp_lanes;
inline constexpr int most_stages = 3;

/// Formats and extents of one attention kernel. `Window` is the type of 16-bit rows.
template <class KeyFormat, class ValueFormat, class Window, int KeyDim, int ValueDim, int Block,
          int Tiles>
struct attention_shape {
  using key_format = KeyFormat;
  using value_format = ValueFormat;
  using window_type = Window;
  static constexpr int key_dim = KeyDim;
  static constexpr int value_dim = ValueDim;
  static constexpr int block = Block;
  static constexpr int tiles = Tiles;
  static constexpr int columns = 8 * Tiles;
};

/// A query of a piece: what it sees, and what its scores get.
struct query_limits {
  std::int32_t begin;
  std::int32_t end;
  std::int32_t tree_begin;  ///< from here on `tree` decides
  std::uint64_t tree;

  KVARTS_DEVICE query_limits within(segment_work const& s) const {
    return {s.begin > begin ? s.begin : begin, s.end < end ? s.end : end, tree_begin, tree};
  }

  KVARTS_DEVICE bool sees(std::int32_t token) const {
    if (token < begin || token >= end) return false;
    return token < tree_begin || (tree >> (token - tree_begin) & 1u) != 0;
  }
};

/// The next stage of a warp's ring, and the phase of its mbarrier.
struct ring_turn {
  std::int32_t stage;
  std::uint32_t phase;
};

/// The state of a piece in shared memory. Tables of codebooks and the warps' rings follow it.
template <class Shape>
struct alignas(128) attention_shared {
  float folded[Shape::columns][Shape::key_dim];
  float plain[Shape::columns][Shape::key_dim];
  float coded_sums[Shape::columns][Shape::value_dim];
  float plain_sums[Shape::columns][Shape::value_dim];
  sums_start key_starts[attention_warps][Shape::tiles]
                       [channel_parts<typename Shape::key_format, Shape::key_dim>][4];
  float bias[Shape::columns];  ///< of scores of coded keys, before the scale
  float maximum[Shape::columns];
  float sum[Shape::columns];
  query_limits limits[Shape::columns];
  work_span<Shape> work;
  attention_piece piece;
  segment_work segment[segments];
  head_planes key_planes;
  head_planes value_planes;
  copy_plane planes[6];       ///< of keys, then of values, for copies in bulk
  std::int32_t const* table;  ///< the block table of both, or null
  std::int64_t unit_sums[attention_threads];
  std::uint64_t arrivals[attention_warps][most_stages];  ///< mbarriers of the rings
  ring_turn ring_turns[attention_warps];
  std::uint32_t arrived;
};

/// A column of a piece: query head `head` of query token `token`; columns beyond the last repeat
/// it and are not stored.
struct query_place {
  int token;
  int head;
  bool exists;
};

template <class Shape>
KVARTS_DEVICE query_place find_column(attention_arguments const& a, attention_piece const& p,
                                      int column) {
  int const all = a.shared * a.request.query_tokens;
  int const index = p.group * Shape::columns + column;
  int const kept = index < all ? index : all - 1;
  return {kept / a.shared, p.head * a.shared + kept % a.shared, index < all};
}

/// Row of a query, and of its output and log-sum-exp.
KVARTS_DEVICE std::int64_t query_row(attention_arguments const& a, int sequence, query_place q) {
  return (std::int64_t{sequence} * a.request.query_tokens + q.token) * a.request.query_heads +
         q.head;
}

/// Reads one column's query with a warp, folds it and notes what it sees.
template <class Shape>
KVARTS_DEVICE void prepare_column(attention_arguments const& a, attention_piece const& p,
                                  warp_transform const& transform, int column,
                                  attention_shared<Shape>& shared) {
  query_place const q = find_column<Shape>(a, p, column);
  dtype const type = a.request.query_type;
  auto const* const row = static_cast<std::byte const*>(a.request.queries) +
                          query_row(a, p.sequence, q) * Shape::key_dim * element_size(type);
  float x[row_slots] = {};
  transform.for_each_number([&](int d, int s) {
    x[s] = load_number(type, row, d);
    shared.plain[column][d] = x[s];
  });
  float bias = transform.fold_query(p.head, x);
  unrolled<5>([&](auto i) { bias += shuffle_xor(bias, 1 << i); });
  transform.for_each_number([&](int d, int s) { shared.folded[column][d] = x[s]; });
  if (lane_here() != 0) return;
  shared.bias[column] = bias;
  shared.maximum[column] = -1e30f;
  shared.sum[column] = 0.0f;
  std::int64_t const length = a.lengths[p.sequence];
  token_span const seen = visible_to(a.request, length, q.token);
  bool const tree = a.request.tree_masks != nullptr;
  std::int64_t const mask_row = std::int64_t{p.sequence} * a.request.query_tokens + q.token;
  shared.limits[column] = {
      static_cast<std::int32_t>(smaller(seen.begin, length)),
      static_cast<std::int32_t>(larger(seen.end, 0)),
      static_cast<std::int32_t>(tree ? length - a.request.tree_tokens : length),
      tree ? a.request.tree_masks[mask_row] : 0};
}

/// Takes the next piece and prepares its state; false where there is none. Begins and ends with a
/// barrier.
template <class Shape>
KVARTS_DEVICE bool begin_piece(attention_arguments const& a, attention_shared<Shape>& shared) {
  block_barrier();
  if (thread_here() == 0) {
    shared.piece = shared.work.next(a);
    if (shared.piece.end > 0) {
      int const sequence = shared.piece.sequence;
      cut_piece<Shape>(parts_of(a, sequence), shared.piece, shared.segment);
      shared.key_planes = find_planes(a.keys, sequence, shared.piece.head);
      shared.value_planes = find_planes(a.values, sequence, shared.piece.head);
      shared.table = find_table(a.keys, sequence);
      if (uses_bulk_copies()) {
        using keys = staged_block<typename Shape::key_format, Shape::key_dim, Shape::block>;
        describe_planes<typename Shape::key_format, Shape::key_dim, Shape::block>(
            a.keys, shared.key_planes, 0, shared.planes);
        describe_planes<typename Shape::value_format, Shape::value_dim, Shape::block>(
            a.values, shared.value_planes, keys::bytes, shared.planes + keys::planes);
      }
    }
  }
  block_barrier();
  attention_piece const& p = shared.piece;
  if (p.end == 0) return false;
  warp_transform const transform(a.transforms[p.sequence], Shape::key_dim);
  KVARTS_NO_UNROLL
  for (int c = warp_here(); c < Shape::columns; c += attention_warps) {
    prepare_column<Shape>(a, p, transform, c, shared);
    for (int d = lane_here(); d < Shape::value_dim; d += warp_lanes) {
      shared.coded_sums[c][d] = 0.0f;
      shared.plain_sums[c][d] = 0.0f;
    }
  }
  block_barrier();
  return true;
}

}  // namespace kvarts::kernels
