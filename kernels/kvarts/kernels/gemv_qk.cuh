// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scores of folded queries with coded keys: K codes are operand A with 16 tokens as rows, query
/// heads the columns of operand B. A warp owns whole blocks of tokens and loads the next one while
/// it works on one; warps never wait for each other.
#pragma once

#include <kvarts/kernels/blocks.cuh>
#include <kvarts/kernels/fields.cuh>
#include <kvarts/kernels/queries.cuh>

namespace kvarts::kernels {

/// Arguments of the score kernels.
struct qk_arguments {
  block_map map;
  level_values values;
  query_rows queries;
  std::int32_t column_tiles;  ///< groups of 8 * Tiles query heads of a KV head
};

/// The part of a launch that a warp works on: blocks first, first + stride, ... of `end` of one
/// sequence, one KV head and one group of columns.
struct warp_work {
  int sequence;
  int head;
  int first_column;
  token_span span;
  std::int64_t first;
  std::int64_t end;
  std::int64_t stride;
};

template <int Block, int Columns>
KVARTS_DEVICE warp_work find_work(cuda::batch const& batch, int column_tiles) {
  warp_work w;
  w.sequence = block_index_z();
  w.head = block_index_y() / column_tiles;
  w.first_column = block_index_y() % column_tiles * Columns;
  w.span = span_of(batch, w.sequence);
  w.first = w.span.begin / Block + block_index() * gemv_warps + warp_index();
  w.end = w.span.end > w.span.begin ? (w.span.end + Block - 1) / Block : 0;
  w.stride = std::int64_t{grid_blocks()} * gemv_warps;
  return w;
}

/// Queries of a warp: `Tiles` tiles of 8 columns, and the start of their sums: what level `lowest`
/// of every code adds, or with zero-points the plain sums of the queries, in the fields' units.
template <class Format, int HeadDim, int Tiles>
struct warp_queries {
  static constexpr int group_steps =
      Format::along == axis::channel ? Format::group / 16 : HeadDim / 16;
  static constexpr int groups = (HeadDim / 16 + group_steps - 1) / group_steps;

  query_operand<HeadDim> operand[Tiles];
  score_columns columns[Tiles];
  float_pair start[Tiles][groups];

  KVARTS_DEVICE void load(qk_arguments const& a, warp_work const& w, lane_place lane) {
    std::int64_t const first_row =
        std::int64_t{w.sequence} * a.queries.query_heads + std::int64_t{w.head} * a.queries.shared;
    unrolled<Tiles>([&](auto t) {
      query_column<HeadDim> column;
      int const index = w.first_column + 8 * t + lane.g;
      column.load(a.queries, first_row + index, index < a.queries.shared, lane.r);
      operand[t].pack(column);
      columns[t].find(a.queries, first_row, w.first_column + 8 * t, lane.r, a.map.batch.max_tokens,
                      operand[t].unscale * fields_of<Format>::unit);
      constexpr float inverse_unit = 1.0f / fields_of<Format>::unit;
      float const factor = Format::has_zero                        ? inverse_unit
                           : Format::level_kind == levels::uniform ? a.values.lowest * inverse_unit
                                                                   : 0.0f;
      unrolled<groups>([&](auto group) {
        constexpr int begin = group * group_steps;
        constexpr int rest = HeadDim / 16 - begin;
        constexpr int count = rest < group_steps ? rest : group_steps;
        start[t][group] = sums_columns(operand[t].template sum<begin, count>() * factor, lane.r);
      });
    });
  }
};

/// Adds the products of a group of steps of 16 tokens to `sums`.
template <class Format, int HeadDim, int Tiles, int Half, int Begin, int Count>
KVARTS_DEVICE void multiply_steps(std::uint32_t const* words, std::uint32_t const* table,
                                  query_operand<HeadDim> const (&queries)[Tiles],
                                  float (&sums)[Tiles][4]) {
  using fields = fields_of<Format>;
  unrolled<Count>([&](auto i) {
    constexpr int step = Begin + i;
    constexpr int field = Half * (HeadDim / 8) + 2 * step;
    std::uint32_t a[4];
    fields::template decode<field>(words, table, a[0], a[1]);
    fields::template decode<field + 1>(words, table, a[2], a[3]);
    unrolled<Tiles>([&](auto t) {
      std::uint32_t const b[2] = {
          scaled_operand<fields::factor_log2(field)>(queries[t].words[step][0]),
          scaled_operand<fields::factor_log2(field + 1)>(queries[t].words[step][1])};
      mma_f16(sums[t], a, b);
    });
  });
}

/// Scores of 16 tokens, in the fields' units; the key's scale is in them.
template <class Format, int HeadDim, int Tiles, int Half>
KVARTS_DEVICE void score_half(tile_place const& tile, std::uint32_t const* words,
                              std::uint32_t const* table,
                              warp_queries<Format, HeadDim, Tiles> const& q, float lowest, int g,
                              float (&scores)[Tiles][4]) {
  using queries = warp_queries<Format, HeadDim, Tiles>;
  std::int64_t const slot = tile.slot + 16 * Half + g;
  unrolled<queries::groups>([&](auto group) {
    constexpr int begin = group * queries::group_steps;
    constexpr int rest = HeadDim / 16 - begin;
    constexpr int count = rest < queries::group_steps ? rest : queries::group_steps;
    float sums[Tiles][4];
    unrolled<Tiles>([&](auto t) {
      float_pair const s = Format::has_zero ? float_pair{0.0f, 0.0f} : q.start[t][group];
      sums[t][0] = sums[t][2] = s.low;
      sums[t][1] = sums[t][3] = s.high;
    });
    multiply_steps<Format, HeadDim, Tiles, Half, begin, count>(words, table, q.operand, sums);
    unrolled<2>([&](auto row) {
      std::int64_t const index = (slot + 8 * row) * queries::groups + group;
      group_values const v = load_group<Format>(tile, index, lowest);
      unrolled<Tiles>([&](auto t) {
        unrolled<2>([&](auto column) {
          constexpr int at = 2 * row + column;
          float total = sums[t][at] * v.scale;
          if constexpr (Format::has_zero) {
            float_pair const s = q.start[t][group];
            total = fused(v.zero, column == 0 ? s.low : s.high, total);
          }
          scores[t][at] = group == 0 ? total : scores[t][at] + total;
        });
      });
    });
  });
}

/// Writes the scores of a lane's tokens 16 half + g and 16 half + g + 8 of a block.
template <int Tiles>
KVARTS_DEVICE void store_half(score_columns const (&columns)[Tiles], token_span span,
                              std::int64_t token, float const (&scores)[Tiles][4]) {
  unrolled<2>([&](auto row) {
    std::int64_t const t = token + 8 * row;
    if (t < span.begin || t >= span.end) return;
    unrolled<Tiles>([&](auto tile) {
      columns[tile].store(t - span.begin, scores[tile][2 * row], scores[tile][2 * row + 1]);
    });
  });
}

/// Keys whose scale is one a row, or one a group of channels.
template <class Format, int HeadDim, int Block, int Tiles>
KVARTS_KERNEL(gemv_warps* warp_lanes, (gemv_blocks<HeadDim, Tiles>))
gemv_qk_kernel(qk_arguments a) {
  constexpr int words = lane_words<Format::bits, HeadDim, Block>;
  constexpr bool ahead = words <= 24;  // beyond, two blocks do not fit in registers
  auto* const table = reinterpret_cast<std::uint32_t*>(shared_memory());
  fields_of<Format>::prepare(table, a.values);
  warp_work const w = find_work<Block, 8 * Tiles>(a.map.batch, a.column_tiles);
  if (w.first >= w.end) return;
  lane_place const lane = place_of_lane();
  warp_queries<Format, HeadDim, Tiles> queries;
  queries.load(a, w, lane);

  auto const load = [&](std::int64_t block, std::uint32_t(&to)[words]) {
    tile_place const tile = find_tile(a.map, w.sequence, w.head, block * Block);
    load_words(tile.codes + std::int64_t{tile.slot / Block} * (words * warp_lanes * 4),
               lane_index(), to);
    return tile;
  };
  std::uint32_t next_words[words];
  tile_place next = load(w.first, next_words);
  for (std::int64_t block = w.first; block < w.end; block += w.stride) {
    std::uint32_t current[words];
    unrolled<words>([&](auto i) { current[i] = next_words[i]; });
    tile_place const tile = next;
    if (ahead && block + w.stride < w.end) next = load(block + w.stride, next_words);
    unrolled<Block / 16>([&](auto half) {
      float scores[Tiles][4];
      score_half<Format, HeadDim, Tiles, half>(tile, current, table, queries, a.values.lowest,
                                               lane.g, scores);
      store_half(queries.columns, w.span, block * Block + 16 * half + lane.g, scores);
    });
    if (!ahead && block + w.stride < w.end) next = load(block + w.stride, next_words);
  }
}

}  // namespace kvarts::kernels
