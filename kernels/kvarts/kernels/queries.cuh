// SPDX-License-Identifier: Apache-2.0
/// @file
/// Queries as operand B of q.K^T: one query head a column, halfs, each head divided by a power of
/// two that goes back into its scores.
#pragma once

#include <kvarts/kernels/columns.cuh>
#include <kvarts/kernels/unroll.cuh>

namespace kvarts::kernels {

/// Query heads of one launch; heads `head * shared ..` read KV head `head`, in tiles of 8 columns.
struct query_rows {
  float const* data;  ///< [sequences, query_heads, head_dim], folded
  float const* bias;  ///< [sequences, query_heads] or null
  float* scores;      ///< [sequences, query_heads, max_tokens]
  std::int32_t query_heads;
  std::int32_t shared;  ///< query heads a KV head
};

/// The query of column `column` of a KV head, whose first query is row `first_row`; null where
/// there is no head.
template <int HeadDim>
KVARTS_DEVICE float const* find_query(query_rows const& q, std::int64_t first_row, int column) {
  return column < q.shared ? q.data + (first_row + column) * HeadDim : nullptr;
}

/// Largest magnitude of an operand's column lies below 2^(query_exponent + 1): its products with
/// the fields' factors stay finite.
inline constexpr int query_exponent = 8;

/// The channels that a lane feeds at a step, i = 0..3, of coded keys: 16 step + 2r, + 1, + 8, + 9.
struct coded_channels {
  static constexpr int of(int step, int i, int r) noexcept {
    return 16 * step + i / 2 * 8 + i % 2 + 2 * r;
  }
};

/// The values of a lane's channels of its column.
template <int HeadDim>
struct query_column {
  static constexpr int steps = HeadDim / 16;
  float values[steps][4];

  /// `from` is the query of the column, zeros where it is null.
  template <class Channels = coded_channels>
  KVARTS_DEVICE void load(float const* from, int r) {
    unrolled<steps>([&](auto s) {
      unrolled<4>(
          [&](auto i) { values[s][i] = from != nullptr ? from[Channels::of(s, i, r)] : 0.0f; });
    });
  }

  KVARTS_DEVICE float largest() const {
    float m = 0.0f;
    unrolled<steps>([&](auto s) {
      unrolled<4>([&](auto i) {
        float const magnitude = values[s][i] < 0.0f ? -values[s][i] : values[s][i];
        m = magnitude > m ? magnitude : m;
      });
    });
    return column_max(m);
  }
};

/// A column as halfs, and what its scores are multiplied by.
template <int HeadDim>
struct query_operand {
  static constexpr int steps = HeadDim / 16;
  std::uint32_t words[steps][2];
  float unscale;

  KVARTS_DEVICE void pack(query_column<HeadDim> const& column) {
    power_scale const s = scale_to(column.largest(), query_exponent);
    unscale = s.inverse;
    unrolled<steps>([&](auto step) {
      unrolled<2>([&](auto i) {
        words[step][i] = pack_half2(column.values[step][2 * i] * s.factor,
                                    column.values[step][2 * i + 1] * s.factor);
      });
    });
  }

  /// Sum of steps `Begin..Begin+Count-1` as rounded, over the whole column.
  template <int Begin, int Count>
  KVARTS_DEVICE float sum() const {
    float total = 0.0f;
    unrolled<Count>([&](auto step) {
      unrolled<2>([&](auto i) {
        float_pair const p = unpack_half2(words[Begin + step][i]);
        total += p.low + p.high;
      });
    });
    return column_sum(total);
  }
};

/// Where the scores of the lane's two columns of the sums go, and how they are finished.
struct score_columns {
  float scale[2];
  float bias[2];
  float* scores;             ///< of the first column, of token 0 of the span
  std::int64_t next_column;  ///< from there to the second column
  int heads;                 ///< how many of the two columns have a head, or below 0

  KVARTS_DEVICE void find(query_rows const& q, std::int64_t first_row, int first_column, int r,
                          std::int64_t max_tokens, float unscale_of_column) {
    float_pair const unscale = sums_columns(unscale_of_column, r);
    unrolled<2>([&](auto i) {
      int const column = first_column + 2 * r + i;
      bool const exists = column < q.shared;
      std::int64_t const row = first_row + column;
      scale[i] = i == 0 ? unscale.low : unscale.high;
      bias[i] = exists && q.bias != nullptr ? q.bias[row] : 0.0f;
    });
    heads = q.shared - first_column - 2 * r;
    scores = heads > 0 ? q.scores + (first_row + first_column + 2 * r) * max_tokens : nullptr;
    next_column = max_tokens;
  }

  /// Two scores of a token, where it exists: `sums` times the column's scale, plus its bias.
  KVARTS_DEVICE void store(bool exists, std::uint32_t index, float low, float high) const {
    float const score[2] = {fused(low, scale[0], bias[0]), fused(high, scale[1], bias[1])};
    if (exists && heads > 0) scores[index] = score[0];
    if (exists && heads > 1) scores[next_column + index] = score[1];
  }
};

}  // namespace kvarts::kernels
