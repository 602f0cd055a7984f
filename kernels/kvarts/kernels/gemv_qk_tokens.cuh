// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scores with keys whose scales belong to channels and are shared by a group of tokens (KIVI):
/// the scales go into the queries, once per block of tokens.
#pragma once

#include <kvarts/kernels/gemv_qk.cuh>

namespace kvarts::kernels {

/// Queries of a warp times the scales of a group, and what zero-points (or `lowest`) add.
template <class Format, int HeadDim, int Tiles>
struct scaled_queries {
  using fields = fields_of<Format>;
  query_operand<HeadDim> operand[Tiles];
  float_pair start[Tiles];

  KVARTS_DEVICE void pack(query_column<HeadDim> const (&columns)[Tiles], tile_place const& tile,
                          std::int64_t group, float lowest, lane_place lane) {
    query_column<HeadDim> scaled[Tiles];
    float zeros[Tiles] = {};
    unrolled<HeadDim / 16>([&](auto step) {
      unrolled<4>([&](auto i) {
        std::int64_t const index = group * HeadDim + coded_channels::of(step, i, lane.r);
        group_values const v = load_group<Format>(tile, index, lowest);
        unrolled<Tiles>([&](auto t) {
          float const q = columns[t].values[step][i];
          scaled[t].values[step][i] = q * v.scale;
          if constexpr (Format::has_zero) zeros[t] = fused(q, v.zero, zeros[t]);
        });
      });
    });
    unrolled<Tiles>([&](auto t) {
      operand[t].pack(scaled[t]);
      float const per_unit = 1.0f / fields::unit;
      if constexpr (Format::has_zero) {
        // Sums are multiplied by unit and by the column's scale at the end; take that back.
        float const sum = column_sum(zeros[t]) / operand[t].unscale;
        start[t] = sums_columns(sum * per_unit, lane.r);
      } else {
        float const sum = operand[t].template sum<0, HeadDim / 16>();
        start[t] = sums_columns(sum * (lowest * per_unit), lane.r);
      }
    });
  }
};

/// Keys in groups of tokens that hold whole blocks.
template <class Format, int HeadDim, int Block, int Tiles>
KVARTS_KERNEL(gemv_warps* warp_lanes, (gemv_blocks<HeadDim, Tiles>))
gemv_qk_tokens_kernel(qk_arguments a) {
  constexpr int words = lane_words<Format::bits, HeadDim, Block>;
  warp_work const w = find_work<Block, 8 * Tiles>(a.map.batch, a.column_tiles);
  if (w.first >= w.end) return;
  lane_place const lane = place_of_lane();
  std::int64_t const first_row =
      std::int64_t{w.sequence} * a.queries.query_heads + std::int64_t{w.head} * a.queries.shared;
  query_column<HeadDim> columns[Tiles];
  unrolled<Tiles>([&](auto t) {
    int const index = w.first_column + 8 * t + lane.g;
    columns[t].load(a.queries, first_row + index, index < a.queries.shared, lane.r);
  });
  for (std::int64_t block = w.first; block < w.end; block += w.stride) {
    tile_place const tile = find_tile(a.map, w.sequence, w.head, block * Block);
    std::uint32_t current[words];
    load_words(tile.codes + std::int64_t{tile.slot / Block} * (words * warp_lanes * 4),
               lane_index(), current);
    scaled_queries<Format, HeadDim, Tiles> queries;
    queries.pack(columns, tile, tile.slot / a.map.group, a.values.lowest, lane);
    unrolled<Block / 16>([&](auto half) {
      float sums[Tiles][4];
      unrolled<Tiles>([&](auto t) {
        sums[t][0] = sums[t][2] = queries.start[t].low;
        sums[t][1] = sums[t][3] = queries.start[t].high;
      });
      multiply_steps<Format, HeadDim, Tiles, half, 0, HeadDim / 16>(current, nullptr,
                                                                    queries.operand, sums);
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
