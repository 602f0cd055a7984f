// SPDX-License-Identifier: Apache-2.0
/// @file
/// Weights p as operand B of p.V: one query head a column, halfs, each column times a power of two
/// that follows its largest weight.
#pragma once

#include <kvarts/kernels/blocks.cuh>
#include <kvarts/kernels/columns.cuh>

namespace kvarts::kernels {

/// Scaled weights stay below 2^8, so that the fields' factors keep them finite as halfs; a column
/// that would exceed it is brought to 2^4.
inline constexpr float weight_limit = 256.0f;
inline constexpr int weight_exponent = 4;

/// Scale of a column before its first weight: any weight exceeds the limit.
KVARTS_DEVICE power_scale first_weight_scale() { return {0x1p120f, 0x1p-120f}; }

/// Keeps the scaled weights of all columns below the limit. Where a column's scale changes, all
/// lanes call `rescale(tile, ratios)` with the ratios of their two columns of the sums. Rare:
/// scales only shrink.
template <int Tiles, class F>
KVARTS_DEVICE void fit_scales(float const (&largest)[Tiles], power_scale (&scales)[Tiles], int r,
                              F&& rescale) {
  bool over = false;
  unrolled<Tiles>([&](auto t) { over = over || largest[t] * scales[t].factor >= weight_limit; });
  if (!any_lane(over)) return;
  unrolled<Tiles>([&](auto t) {
    float const column = column_max(largest[t]);
    power_scale const old = scales[t];
    if (column * old.factor >= weight_limit) scales[t] = scale_to(column, weight_exponent);
    float const ratio = scales[t].factor * old.inverse;
    rescale(t, ratio, sums_columns(ratio, r));
  });
}

/// Where the weights of a lane's columns lie: `[sequences, query_heads, max_tokens]`.
struct weight_rows {
  float const* data;
  std::int32_t query_heads;
  std::int32_t shared;  ///< query heads a KV head
};

/// The rows of weights of column g of each tile; null where there is no head.
template <int Tiles>
KVARTS_DEVICE void find_weight_rows(weight_rows const& w, std::int64_t first_row, int first_column,
                                    int g, std::int64_t max_tokens, float const* (&rows)[Tiles]) {
  unrolled<Tiles>([&](auto t) {
    int const column = first_column + 8 * t + g;
    rows[t] = column < w.shared ? w.data + (first_row + column) * max_tokens : nullptr;
  });
}

/// The tokens of a lane's pairs in a block: those of coded values, and of plain rows.
struct coded_tokens {
  static constexpr int of(int pair, int i, int r) noexcept { return 8 * pair + 2 * r + i; }
};
struct row_tokens {
  static constexpr int of(int pair, int i, int r) noexcept { return 4 * r + 2 * pair + i; }
};

/// The weights of a block of tokens for column g of each tile, two tokens a pair.
template <int Block, int Tiles, class Tokens = coded_tokens>
struct block_weights {
  static constexpr int pairs = Block / 8;
  float values[Tiles][pairs][2];

  /// `rows[t]` is the row of column g, from the span's first token on; null where there is no head.
  KVARTS_DEVICE void load(float const* const (&rows)[Tiles], token_span span,
                          std::int64_t first_token, int r) {
    unrolled<pairs>([&](auto pair) {
      unrolled<2>([&](auto i) {
        std::int64_t const token = first_token + Tokens::of(pair, i, r);
        bool const inside = token >= span.begin && token < span.end;
        unrolled<Tiles>([&](auto t) {
          values[t][pair][i] = inside && rows[t] != nullptr ? rows[t][token - span.begin] : 0.0f;
        });
      });
    });
  }

  KVARTS_DEVICE float largest(int tile) const {
    float m = 0.0f;
    unrolled<pairs>([&](auto pair) {
      unrolled<2>([&](auto i) {
        float const v = values[tile][pair][i];
        float const magnitude = v < 0.0f ? -v : v;
        m = magnitude > m ? magnitude : m;
      });
    });
    return m;
  }

  KVARTS_DEVICE void pack(power_scale const (&scales)[Tiles],
                          std::uint32_t (&words)[Tiles][pairs]) const {
    unrolled<Tiles>([&](auto t) {
      unrolled<pairs>([&](auto pair) {
        words[t][pair] = pack_half2(values[t][pair][0] * scales[t].factor,
                                    values[t][pair][1] * scales[t].factor);
      });
    });
  }
};

/// Parameters of the lane's tokens (those of `block_weights`), one a token: `index(token)` tells
/// which; tokens outside the span get zeros, whatever is stored there.
template <class Format, int Block, class Index>
KVARTS_DEVICE void load_token_groups(tile_place const& tile, token_span span,
                                     std::int64_t first_token, float lowest, int r, Index&& index,
                                     group_values (&out)[Block / 8][2]) {
  unrolled<Block / 8>([&](auto pair) {
    unrolled<2>([&](auto i) {
      int const offset = coded_tokens::of(pair, i, r);
      std::int64_t const token = first_token + offset;
      bool const inside = token >= span.begin && token < span.end;
      out[pair][i] = inside ? load_group<Format>(tile, index(tile.slot + offset), lowest)
                            : group_values{0.0f, 0.0f};
    });
  });
}

}  // namespace kvarts::kernels
