// SPDX-License-Identifier: Apache-2.0
/// @file
/// Weighted sums of coded values. Tokens are split over thread blocks and their warps; a second
/// kernel adds the parts up, always in the same order.
#pragma once

#include <kvarts/kernels/value_sums.cuh>

namespace kvarts::kernels {

/// Arguments of the weighted sums.
struct pv_arguments {
  block_map map;
  level_values values;
  weight_rows weights;
  float* output;  ///< [splits, sequences, query_heads, head_dim]
  std::int32_t column_tiles;
};

/// Arguments of the sum of the parts.
struct pv_merge_arguments {
  cuda::batch batch;
  float const* parts;
  float* output;  ///< [sequences, query_heads, head_dim]
  std::int32_t splits;
  std::int32_t query_heads;
  std::int32_t head_dim;
  std::int32_t block;  ///< tokens of the blocks that were split
};

/// Blocks of a sequence that one of `splits` parts works on.
struct split_span {
  int first;
  int end;
};

KVARTS_DEVICE split_span find_split(token_span span, int block, int splits, int index) {
  if (span.end <= span.begin) return {0, 0};
  int const first = static_cast<int>(span.begin / block);
  int const end = static_cast<int>((span.end + block - 1) / block);
  int const each = (end - first - 1) / splits + 1;
  int const begin = first + each * index;
  return {begin, begin + each < end ? begin + each : end};
}

/// Adds the sums of a block's warps up, in their order, and writes them as its part.
template <int HeadDim, int Columns>
KVARTS_DEVICE void store_block_sums(float const* shared, pv_arguments const& a,
                                    std::int64_t first_row, int first_column) {
  int const rest = a.weights.shared - first_column;
  int const columns = rest < Columns ? rest : Columns;
  std::int64_t const part_rows = std::int64_t{a.map.batch.sequences} * a.weights.query_heads;
  float* const to = a.output + (block_index() * part_rows + first_row + first_column) * HeadDim;
  for (int i = thread_index(); i < columns * HeadDim; i += block_threads()) {
    float total = shared[i];
    unrolled<gemv_warps - 1>([&](auto w) { total += shared[(w + 1) * Columns * HeadDim + i]; });
    to[i] = total;
  }
}

/// Shared memory for the sums of a block's warps; the table of a codebook follows.
template <int HeadDim, int Tiles>
inline constexpr std::size_t sums_bytes = sizeof(float) * gemv_warps * 8 * Tiles* HeadDim;

/// One part of the tokens of a sequence, one KV head, one group of 8 * Tiles columns.
template <class Format, int HeadDim, int Block, int Tiles>
KVARTS_KERNEL(gemv_warps* warp_lanes, (gemv_blocks<HeadDim, Tiles>))
gemv_pv_kernel(pv_arguments a) {
  using warp_sums = value_sums<Format, HeadDim, Block, Tiles>;
  constexpr int words = warp_sums::words;
  constexpr int columns = 8 * Tiles;
  auto* const shared = reinterpret_cast<float*>(shared_memory());
  auto* const table = reinterpret_cast<std::uint32_t*>(shared + gemv_warps * columns * HeadDim);
  fields_of<Format>::prepare(table, a.values);

  int const sequence = block_index_z();
  int const head = block_index_y() / a.column_tiles;
  int const first_column = block_index_y() % a.column_tiles * columns;
  token_span const span = span_of(a.map.batch, sequence);
  split_span const part = find_split(span, Block, grid_blocks(), block_index());
  if (part.first >= part.end) return;
  lane_place const lane = place_of_lane();
  std::int64_t const first_row =
      std::int64_t{sequence} * a.weights.query_heads + std::int64_t{head} * a.weights.shared;
  float const* rows[Tiles];
  find_weight_rows(a.weights, first_row, first_column, lane.g, a.map.batch.max_tokens, rows);

  head_tiles const tiles(a.map, sequence, head);
  warp_sums sums;
  for (int block = part.first + warp_index(); block < part.end; block += gemv_warps) {
    std::int64_t const first_token = std::int64_t{block} * Block;
    tile_place const tile = tiles.find(first_token);
    std::uint32_t codes[words];
    load_block<Block>(tile, lane_index(), codes);
    block_weights<Block, Tiles> weights;
    weights.load(rows, span, first_token, lane.r);
    if constexpr (Format::along == axis::row) {
      sums.add_rows(tile, codes, table, weights, span, first_token, a.values.lowest, lane.r);
    } else if constexpr (Format::along == axis::token) {
      sums.add_token_groups(tile, codes, weights, tile.slot >> a.map.group_log2, a.values.lowest,
                            lane);
    } else {
      sums.add_channel_groups(tile, codes, weights, span, first_token, a.values.lowest, lane.r);
    }
  }
  sums.store(shared + warp_index() * columns * HeadDim, a.values.lowest, lane);
  block_barrier();
  store_block_sums<HeadDim, columns>(shared, a, first_row, first_column);
}

/// Adds the parts of a query head up; zeros where a sequence is empty. A template, so that more
/// than one source may hold it.
template <int Threads>
KVARTS_KERNEL(Threads, 1024 / Threads)
gemv_pv_merge_kernel(pv_merge_arguments a) {
  token_span const span = span_of(a.batch, block_index_y());
  std::int64_t const row = std::int64_t{block_index_y()} * a.query_heads + block_index();
  std::int64_t const part_rows = std::int64_t{a.batch.sequences} * a.query_heads;
  for (int d = thread_index(); d < a.head_dim; d += block_threads()) {
    float total = 0.0f;
    for (int i = 0; i < a.splits; ++i) {
      split_span const part = find_split(span, a.block, a.splits, i);
      if (part.first >= part.end) break;
      total += a.parts[(i * part_rows + row) * a.head_dim + d];
    }
    a.output[row * a.head_dim + d] = total;
  }
}

}  // namespace kvarts::kernels
