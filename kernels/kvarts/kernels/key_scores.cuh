// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scores of a warp's queries with a block of coded keys: K codes are operand A with 16 tokens as
/// rows, queries the columns of operand B; scales multiply the sums, or the queries.
#pragma once

#include <kvarts/kernels/blocks.cuh>
#include <kvarts/kernels/fields.cuh>
#include <kvarts/kernels/queries.cuh>

namespace kvarts::kernels {

/// `Tiles` tiles of 8 queries, and the start of their sums: what level `lowest` of every code adds,
/// or with zero-points the plain sums of the queries, in the fields' units.
template <class Format, int HeadDim, int Tiles>
struct key_queries {
  static constexpr int group_steps =
      Format::along == axis::channel ? Format::group / 16 : HeadDim / 16;
  static constexpr int groups = (HeadDim / 16 + group_steps - 1) / group_steps;

  query_operand<HeadDim> operand[Tiles];
  float_pair start[Tiles][groups];

  /// `rows[t]` is the query of column g of tile t, or null.
  KVARTS_DEVICE void load(float const* const (&rows)[Tiles], float lowest, int r) {
    constexpr float inverse_unit = 1.0f / fields_of<Format>::unit;
    float const factor = Format::has_zero                        ? inverse_unit
                         : Format::level_kind == levels::uniform ? lowest * inverse_unit
                                                                 : 0.0f;
    unrolled<Tiles>([&](auto t) {
      query_column<HeadDim> column;
      column.load(rows[t], r);
      operand[t].pack(column);
      unrolled<groups>([&](auto group) {
        constexpr int begin = group * group_steps;
        constexpr int rest = HeadDim / 16 - begin;
        constexpr int count = rest < group_steps ? rest : group_steps;
        start[t][group] = sums_columns(operand[t].template sum<begin, count>() * factor, r);
      });
    });
  }
};

/// `starts` of the columns plus the products of a group of steps, for 16 tokens.
template <class Format, int HeadDim, int Tiles, int Half, int Begin, int Count>
KVARTS_DEVICE void multiply_steps(std::uint32_t const* words, std::uint32_t const* table,
                                  query_operand<HeadDim> const (&queries)[Tiles],
                                  sums_start const (&starts)[Tiles], float (&sums)[Tiles][4]) {
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
      if constexpr (i == 0) {
        mma_f16(sums[t], a, b, starts[t].values);
      } else {
        mma_f16(sums[t], a, b);
      }
    });
  });
}

/// Scores of 16 tokens, in the fields' units; the key's scale is in them. `start_of(tile, group)`
/// is the start of the queries' sums.
template <class Format, int HeadDim, int Tiles, int Half, class StartOf>
KVARTS_DEVICE void score_half(tile_place const& tile, std::uint32_t const* words,
                              std::uint32_t const* table,
                              query_operand<HeadDim> const (&operand)[Tiles], StartOf&& start_of,
                              float lowest, int g, float (&scores)[Tiles][4]) {
  using queries = key_queries<Format, HeadDim, Tiles>;
  auto const slot = static_cast<std::uint32_t>(tile.slot + 16 * Half + g);
  group_values values[2][queries::groups];
  unrolled<2>([&](auto row) {
    load_groups<Format>(tile, std::int64_t{slot + 8 * row} * queries::groups, lowest, values[row]);
  });
  unrolled<queries::groups>([&](auto group) {
    constexpr int begin = group * queries::group_steps;
    constexpr int rest = HeadDim / 16 - begin;
    constexpr int count = rest < queries::group_steps ? rest : queries::group_steps;
    sums_start starts[Tiles];
    unrolled<Tiles>(
        [&](auto t) { starts[t] = Format::has_zero ? sums_start{} : start_of(t, group); });
    float sums[Tiles][4];
    multiply_steps<Format, HeadDim, Tiles, Half, begin, count>(words, table, operand, starts, sums);
    unrolled<2>([&](auto row) {
      group_values const v = values[row][group];
      unrolled<Tiles>([&](auto t) {
        unrolled<2>([&](auto column) {
          constexpr int at = 2 * row + column;
          float total = sums[t][at] * v.scale;
          if constexpr (Format::has_zero) {
            total = fused(v.zero, start_of(t, group).values[column], total);
          }
          scores[t][at] = group == 0 ? total : scores[t][at] + total;
        });
      });
    });
  });
}

/// Queries of a warp times the scales of a group, and what zero-points (or `lowest`) add.
template <class Format, int HeadDim, int Tiles>
struct scaled_queries {
  using fields = fields_of<Format>;
  query_operand<HeadDim> operand[Tiles];
  sums_start start[Tiles];

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
        float const sum = column_sum(zeros[t]) * inverse_power(operand[t].unscale);
        start[t] = start_with(sums_columns(sum * per_unit, lane.r));
      } else {
        float const sum = operand[t].template sum<0, HeadDim / 16>();
        start[t] = start_with(sums_columns(sum * (lowest * per_unit), lane.r));
      }
    });
  }
};

}  // namespace kvarts::kernels
