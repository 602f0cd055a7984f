// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scores with keys whose scales belong to channels and are shared by a group of tokens (KIVI):
/// the scales go into the queries, once per block of tokens.
#pragma once

#include <kvarts/kernels/gemv_qk.cuh>

namespace kvarts::kernels {

/// Keys in groups of tokens that hold whole blocks.
template <class Format, int HeadDim, int Block, int Tiles>
KVARTS_KERNEL(gemv_warps* warp_lanes, (HeadDim * Tiles <= 64 ? 4 : 2))
gemv_qk_tokens_kernel(qk_arguments a) {
  constexpr int words = lane_words<Format::bits, HeadDim, Block>;
  warp_work const w = find_work<Block, 8 * Tiles>(a.map.batch, a.column_tiles);
  if (w.first >= w.end) return;
  lane_place const lane = place_of_lane();
  std::int64_t const first_row =
      std::int64_t{w.sequence} * a.queries.query_heads + std::int64_t{w.head} * a.queries.shared;
  query_column<HeadDim> columns[Tiles];
  unrolled<Tiles>([&](auto t) {
    int const column = w.first_column + 8 * t + lane.g;
    columns[t].load(find_query<HeadDim>(a.queries, first_row, column), lane.r);
  });
  head_tiles const tiles(a.map, w.sequence, w.head);
  for (std::int64_t block = w.first; block < w.end; block += w.stride) {
    tile_place const tile = tiles.find(block * Block);
    std::uint32_t current[words];
    load_block<Block>(tile, lane_index(), current);
    scaled_queries<Format, HeadDim, Tiles> queries;
    queries.pack(columns, tile, tile.slot >> a.map.group_log2, a.values.lowest, lane);
    unrolled<Block / 16>([&](auto half) {
      float sums[Tiles][4];
      multiply_steps<Format, HeadDim, Tiles, half, 0, HeadDim / 16>(
          current, nullptr, queries.operand, queries.start, sums);
      score_columns to[Tiles];
      unrolled<Tiles>([&](auto t) {
        to[t].find(a.queries, first_row, w.first_column + 8 * t, lane.r, a.map.batch.max_tokens,
                   queries.operand[t].unscale * fields_of<Format>::unit);
      });
      store_half(to, w.span, block * Block + 16 * half + lane.g, sums);
    });
  }
}

}  // namespace kvarts::kernels
