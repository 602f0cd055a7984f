// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scores of folded queries with coded keys: K codes are operand A with 16 tokens as rows, query
/// heads the columns of operand B. A warp owns whole blocks of tokens and loads the next one while
/// it works on one; warps never wait for each other.
#pragma once

#include <kvarts/kernels/key_scores.cuh>

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
  int first;
  int end;
  int stride;
};

template <int Block, int Columns>
KVARTS_DEVICE warp_work find_work(cuda::batch const& batch, int column_tiles) {
  warp_work w;
  w.sequence = block_index_z();
  w.head = block_index_y() / column_tiles;
  w.first_column = block_index_y() % column_tiles * Columns;
  w.span = span_of(batch, w.sequence);
  w.first = static_cast<int>(w.span.begin / Block) + block_index() * gemv_warps + warp_index();
  w.end = w.span.end > w.span.begin ? static_cast<int>((w.span.end + Block - 1) / Block) : 0;
  w.stride = grid_blocks() * gemv_warps;
  return w;
}

/// Queries of a warp and where their scores go.
template <class Format, int HeadDim, int Tiles>
struct warp_queries {
  key_queries<Format, HeadDim, Tiles> keys;
  score_columns columns[Tiles];

  KVARTS_DEVICE void load(qk_arguments const& a, warp_work const& w, lane_place lane) {
    std::int64_t const first_row =
        std::int64_t{w.sequence} * a.queries.query_heads + std::int64_t{w.head} * a.queries.shared;
    float const* rows[Tiles];
    unrolled<Tiles>([&](auto t) {
      rows[t] = find_query<HeadDim>(a.queries, first_row, w.first_column + 8 * t + lane.g);
    });
    keys.load(rows, a.values.lowest, lane.r);
    unrolled<Tiles>([&](auto t) {
      columns[t].find(a.queries, first_row, w.first_column + 8 * t, lane.r, a.map.batch.max_tokens,
                      keys.operand[t].unscale * fields_of<Format>::unit);
    });
  }
};

/// Writes the scores of a lane's tokens 16 half + g and 16 half + g + 8 of a block.
template <int Tiles>
KVARTS_DEVICE void store_half(score_columns const (&columns)[Tiles], token_span span,
                              std::int64_t token, float const (&scores)[Tiles][4]) {
  // Positions fit into 31 bits: before the span's begin they wrap around, beyond its length.
  auto const begin = static_cast<std::uint32_t>(span.begin);
  auto const length = static_cast<std::uint32_t>(span.end) - begin;
  unrolled<2>([&](auto row) {
    std::uint32_t const index = static_cast<std::uint32_t>(token) - begin + 8 * row;
    unrolled<Tiles>([&](auto tile) {
      columns[tile].store(index < length, index, scores[tile][2 * row], scores[tile][2 * row + 1]);
    });
  });
}

/// Keys whose scale is one a row, or one a group of channels.
template <class Format, int HeadDim, int Block, int Tiles>
KVARTS_KERNEL(gemv_warps* warp_lanes, (gemv_blocks<HeadDim, Tiles>))
gemv_qk_kernel(qk_arguments a) {
  constexpr int words = lane_words<Format::bits, HeadDim, Block>;
  // Elsewhere two blocks do not fit in registers.
  constexpr bool ahead = words <= (Format::along == axis::row ? 24 : 12);
  auto* const table = reinterpret_cast<std::uint32_t*>(shared_memory());
  fields_of<Format>::prepare(table, a.values);
  warp_work const w = find_work<Block, 8 * Tiles>(a.map.batch, a.column_tiles);
  if (w.first >= w.end) return;
  lane_place const lane = place_of_lane();
  warp_queries<Format, HeadDim, Tiles> queries;
  queries.load(a, w, lane);

  head_tiles const tiles(a.map, w.sequence, w.head);
  auto const load = [&](int block, std::uint32_t(&to)[words]) {
    tile_place const tile = tiles.find(std::int64_t{block} * Block);
    load_block<Block>(tile, lane_index(), to);
    return tile;
  };
  std::uint32_t next_words[words];
  tile_place next = load(w.first, next_words);
  for (int block = w.first; block < w.end; block += w.stride) {
    std::uint32_t current[words];
    unrolled<words>([&](auto i) { current[i] = next_words[i]; });
    tile_place const tile = next;
    if (ahead && block + w.stride < w.end) next = load(block + w.stride, next_words);
    unrolled<Block / 16>([&](auto half) {
      float scores[Tiles][4];
      score_half<Format, HeadDim, Tiles, half>(
          tile, current, table, queries.keys.operand,
          [&](auto t, auto group) { return start_with(queries.keys.start[t][group]); },
          a.values.lowest, lane.g, scores);
      store_half(queries.columns, w.span, std::int64_t{block} * Block + 16 * half + lane.g, scores);
    });
    if (!ahead && block + w.stride < w.end) next = load(block + w.stride, next_words);
  }
}

}  // namespace kvarts::kernels
