// SPDX-License-Identifier: Apache-2.0
/// @file
/// Products with plain 16-bit rows: unquantized layers, and the baseline of all speed ratios.
#pragma once

#include <kvarts/kernels/gemv_pv.cuh>
#include <kvarts/kernels/gemv_qk.cuh>
#include <kvarts/kernels/plain_rows.cuh>

namespace kvarts::kernels {

/// Tokens that a warp works on at a time.
inline constexpr int row_block = 16;

/// The row of a token; null outside the span.
KVARTS_DEVICE std::byte const* find_row(block_map const& m, int sequence, int head, token_span span,
                                        std::int64_t token, int row_bytes) {
  if (token < span.begin || token >= span.end) return nullptr;
  tile_place const tile = find_tile(m, sequence, head, token);
  return tile.codes + std::int64_t{tile.slot} * row_bytes;
}

/// Scores with plain rows.
template <class Value, int HeadDim, int Tiles>
KVARTS_KERNEL(gemv_warps* warp_lanes, (gemv_blocks<HeadDim, Tiles>))
gemv_qk_plain_kernel(qk_arguments a) {
  warp_work const w = find_work<row_block, 8 * Tiles>(a.map.batch, a.column_tiles);
  if (w.first >= w.end) return;
  lane_place const lane = place_of_lane();
  std::int64_t const first_row =
      std::int64_t{w.sequence} * a.queries.query_heads + std::int64_t{w.head} * a.queries.shared;
  plain_query<Value, HeadDim> queries[Tiles];
  score_columns columns[Tiles];
  unrolled<Tiles>([&](auto t) {
    int const column = w.first_column + 8 * t;
    queries[t].load(find_query<HeadDim>(a.queries, first_row, column + lane.g), lane.r);
    columns[t].find(a.queries, first_row, column, lane.r, a.map.batch.max_tokens,
                    queries[t].unscale);
  });
  for (std::int64_t block = w.first; block < w.end; block += w.stride) {
    std::byte const* at[2];
    unrolled<2>([&](auto i) {
      at[i] = find_row(a.map, w.sequence, w.head, w.span, block * row_block + lane.g + 8 * i,
                       HeadDim * 2);
    });
    key_rows<HeadDim> rows;
    rows.load(at, lane.r);
    float sums[Tiles][4] = {};
    rows.multiply(queries, sums);
    store_half(columns, w.span, block * row_block + lane.g, sums);
  }
}

/// Weighted sums of plain rows, one part of the tokens.
template <class Value, int HeadDim, int Tiles>
KVARTS_KERNEL(gemv_warps* warp_lanes, (gemv_blocks<HeadDim, Tiles>))
gemv_pv_plain_kernel(pv_arguments a) {
  constexpr int steps = HeadDim / 16;
  constexpr int columns = 8 * Tiles;
  auto* const shared = reinterpret_cast<float*>(shared_memory());
  int const sequence = block_index_z();
  int const head = block_index_y() / a.column_tiles;
  int const first_column = block_index_y() % a.column_tiles * columns;
  token_span const span = span_of(a.map.batch, sequence);
  split_span const part = find_split(span, row_block, grid_blocks(), block_index());
  if (part.first >= part.end) return;
  lane_place const lane = place_of_lane();
  std::int64_t const first_row =
      std::int64_t{sequence} * a.weights.query_heads + std::int64_t{head} * a.weights.shared;
  float const* weight_rows_of[Tiles];
  find_weight_rows(a.weights, first_row, first_column, lane.g, a.map.batch.max_tokens,
                   weight_rows_of);

  float sums[Tiles][steps][4] = {};
  power_scale scales[Tiles];
  bool const halfs = std::is_same_v<Value, half>;
  unrolled<Tiles>([&](auto t) {
    scales[t] = halfs ? first_weight_scale() : power_scale{1.0f, 1.0f};
  });
  for (std::int64_t block = part.first + warp_index(); block < part.end; block += gemv_warps) {
    value_rows<HeadDim> rows;
    unrolled<4>([&](auto i) {
      rows.template load<i>(
          find_row(a.map, sequence, head, span, block * row_block + 4 * lane.r + i, HeadDim * 2),
          lane.g);
    });
    block_weights<row_block, Tiles, row_tokens> weights;
    weights.load(weight_rows_of, span, block * row_block, lane.r);
    if constexpr (std::is_same_v<Value, half>) {
      float largest[Tiles];
      unrolled<Tiles>([&](auto t) { largest[t] = weights.largest(t); });
      fit_scales(largest, scales, lane.r, [&](auto t, float, float_pair ratio) {
        unrolled<4>([&](auto i) {
          float const factor = i % 2 == 0 ? ratio.low : ratio.high;
          unrolled<steps>([&](auto s) { sums[t][s][i] *= factor; });
        });
      });
    }
    small_pair<Value> operand[Tiles][2];
    unrolled<Tiles>([&](auto t) {
      unrolled<2>([&](auto i) {
        operand[t][i].pack(weights.values[t][i][0] * scales[t].factor,
                           weights.values[t][i][1] * scales[t].factor);
      });
    });
    rows.multiply(operand, sums);
  }
  float* const to = shared + warp_index() * columns * HeadDim;
  unrolled<Tiles>([&](auto t) {
    float_pair const inverse = sums_columns(scales[t].inverse, lane.r);
    unrolled<steps>([&](auto s) {
      unrolled<4>([&](auto k) {
        int const column = 8 * t + 2 * lane.r + k % 2;
        int const channel = value_rows<HeadDim>::template channel<s, k>(lane.g);
        to[column * HeadDim + channel] = sums[t][s][k] * (k % 2 == 0 ? inverse.low : inverse.high);
      });
    });
  });
  block_barrier();
  store_block_sums<HeadDim, columns>(shared, a, first_row, first_column);
}

}  // namespace kvarts::kernels
