// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scores of a block of keys for the queries of a piece, of codes and of plain rows.
#pragma once

#include <kvarts/kernels/attention_ring.cuh>
#include <kvarts/kernels/attention_rows.cuh>
#include <kvarts/kernels/attention_softmax.cuh>
#include <kvarts/kernels/key_scores.cuh>
#include <kvarts/kernels/plain_rows.cuh>

namespace kvarts::kernels {

inline constexpr float log2_of_e = 1.4426950408889634f;

/// What turns a column's sums into scores, for the two columns of a lane.
template <class Shape>
KVARTS_DEVICE score_line find_line(attention_arguments const& a,
                                   attention_shared<Shape> const& shared, int tile, int r,
                                   float unscale_of_column, bool coded) {
  float const factor = a.request.scale * log2_of_e;
  float_pair const unscale = sums_columns(unscale_of_column, r);
  float const* const bias = shared.bias + 8 * tile + 2 * r;
  return {{unscale.low * factor, unscale.high * factor},
          {coded ? bias[0] * factor : 0.0f, coded ? bias[1] * factor : 0.0f}};
}

/// Queries for coded keys.
template <class Shape>
struct coded_keys {
  using format = typename Shape::key_format;
  static constexpr bool by_token = format::along == axis::token;
  static constexpr int halves = Shape::block / 16;
  static constexpr int words = lane_words<format::bits, Shape::key_dim, Shape::block>;

  static constexpr int groups = channel_parts<format, Shape::key_dim>;

  using queries_type = std::conditional_t<by_token, query_column<Shape::key_dim>[Shape::tiles],
                                          key_queries<format, Shape::key_dim, Shape::tiles>>;
  queries_type queries;
  score_line lines[Shape::tiles];

  KVARTS_DEVICE void load(attention_arguments const& a, attention_shared<Shape>& shared,
                          lane_place lane) {
    float const* rows[Shape::tiles];
    unrolled<Shape::tiles>([&](auto t) { rows[t] = shared.folded[8 * t + lane.g]; });
    if constexpr (by_token) {
      unrolled<Shape::tiles>([&](auto t) { queries[t].load(rows[t], lane.r); });
    } else {
      queries.load(rows, a.key_levels.lowest, lane.r);
      if constexpr (groups > 1) store_starts(shared, lane);
    }
    unrolled<Shape::tiles>([&](auto t) {
      float unscale = fields_of<format>::unit;
      if constexpr (!by_token) unscale *= queries.operand[t].unscale;
      lines[t] = find_line(a, shared, t, lane.r, unscale, true);
    });
  }

  /// Sums of a staged block, to be put through `lines`.
  KVARTS_DEVICE void multiply(attention_shared<Shape> const& shared, std::byte const* stage,
                              std::uint32_t const* table, float lowest, lane_place lane,
                              float (&scores)[halves][Shape::tiles][4]) const {
    tile_place const tile = staged_tile<format, Shape::key_dim, Shape::block>(stage);
    std::uint32_t codes[words];
    load_staged_words(stage, lane.lane, codes);
    if constexpr (by_token) {
      scaled_queries<format, Shape::key_dim, Shape::tiles> scaled;
      scaled.pack(queries, tile, 0, lowest, lane);
      float_pair unscales[Shape::tiles];
      unrolled<Shape::tiles>(
          [&](auto t) { unscales[t] = sums_columns(scaled.operand[t].unscale, lane.r); });
      unrolled<halves>([&](auto h) {
        multiply_steps<format, Shape::key_dim, Shape::tiles, h, 0, Shape::key_dim / 16>(
            codes, table, scaled.operand, scaled.start, scores[h]);
        unrolled<Shape::tiles>([&](auto t) {
          unrolled<4>(
              [&](auto i) { scores[h][t][i] *= i % 2 == 0 ? unscales[t].low : unscales[t].high; });
        });
      });
    } else {
      auto const start_of = [&](auto t, auto group) {
        if constexpr (groups > 1) return shared.key_starts[warp_here()][t][group][lane.r];
        return start_with(queries.start[t][group]);
      };
      unrolled<halves>([&](auto h) {
        score_half<format, Shape::key_dim, Shape::tiles, h>(tile, codes, table, queries.operand,
                                                            start_of, lowest, lane.g, scores[h]);
      });
    }
  }

 private:
  /// Starts of many groups wait in shared memory, where the product takes them from as they are.
  KVARTS_DEVICE void store_starts(attention_shared<Shape>& shared, lane_place lane) const {
    warp_barrier();
    if (lane.g == 0) {
      unrolled<Shape::tiles>([&](auto t) {
        unrolled<groups>([&](auto group) {
          shared.key_starts[warp_here()][t][group][lane.r] = start_with(queries.start[t][group]);
        });
      });
    }
    warp_barrier();
  }
};

/// The 16-bit type of plain rows: of the codec, or of the windows.
template <class Format, class Shape, bool Coded>
using row_type = typename std::conditional_t<Coded, Format,
                                             plain_format<typename Shape::window_type>>::value_type;

/// Queries for plain keys: of windows, or of a plain codec, whose rows went through the transform.
template <class Shape, bool Coded>
struct plain_keys {
  using value = row_type<typename Shape::key_format, Shape, Coded>;
  static constexpr int halves = Shape::block / 16;

  plain_query<value, Shape::key_dim> queries[Shape::tiles];
  score_line lines[Shape::tiles];

  KVARTS_DEVICE void load(attention_arguments const& a, attention_shared<Shape> const& shared,
                          lane_place lane) {
    unrolled<Shape::tiles>([&](auto t) {
      int const column = 8 * t + lane.g;
      queries[t].load(Coded ? shared.folded[column] : shared.plain[column], lane.r);
      lines[t] = find_line(a, shared, t, lane.r, queries[t].unscale, Coded);
    });
  }

  /// Sums of the block at `first_token`, to be put through `lines`.
  template <bool Sinks>
  KVARTS_DEVICE void multiply(attention_arguments const& a, attention_shared<Shape> const& shared,
                              segment_work const& w, std::int32_t first_token, lane_place lane,
                              float (&scores)[halves][Shape::tiles][4]) const {
    with_rows<Sinks, Coded>(
        a.keys, a.key_windows, shared.piece, w, first_token, Shape::key_dim * 2,
        [&](auto const& find) {
          unrolled<halves>([&](auto h) {
            std::byte const* at[2];
            unrolled<2>([&](auto i) { at[i] = find(first_token + 16 * h + 8 * i + lane.g); });
            key_rows<Shape::key_dim> rows;
            rows.load(at, lane.r);
            unrolled<Shape::tiles>(
                [&](auto t) { unrolled<4>([&](auto i) { scores[h][t][i] = 0.0f; }); });
            rows.multiply(queries, scores[h]);
          });
        });
  }
};

}  // namespace kvarts::kernels
