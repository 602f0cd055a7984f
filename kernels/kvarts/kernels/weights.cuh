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

/// The rows of weights of column g of each tile; a column without a head repeats the last one.
template <int Tiles>
KVARTS_DEVICE void find_weight_rows(weight_rows const& w, std::int64_t first_row, int first_column,
                                    int g, std::int64_t max_tokens, float const* (&rows)[Tiles]) {
  unrolled<Tiles>([&](auto t) {
    int const column = first_column + 8 * t + g;
    rows[t] = w.data + (first_row + (column < w.shared ? column : w.shared - 1)) * max_tokens;
  });
}

/// The tokens of a lane's pairs in a block: those of coded values, and of plain rows.
struct coded_tokens {
  static constexpr int of(int pair, int i, int r) noexcept { return 8 * pair + 2 * r + i; }
};
struct row_tokens {
  static constexpr int of(int pair, int i, int r) noexcept { return 4 * r + 2 * pair + i; }
};

/// The tokens of a block that belong to a span: nearly always all of them, which warps tell once.
struct block_part {
  int begin;
  int end;
  int size;

  KVARTS_DEVICE block_part(token_span span, std::int64_t first_token, int block) : size(block) {
    auto const before = static_cast<int>(span.begin - first_token);
    auto const after = static_cast<int>(span.end - first_token);
    begin = before < 0 ? 0 : before;
    end = after < block ? after : block;
  }
  KVARTS_DEVICE bool whole() const { return begin == 0 && end == size; }
  KVARTS_DEVICE bool has(int slot) const { return slot >= begin && slot < end; }
};

/// The weights of a block of tokens for column g of each tile, two tokens a pair.
template <int Block, int Tiles, class Tokens = coded_tokens>
struct block_weights {
  static constexpr int pairs = Block / 8;
  float values[Tiles][pairs][2];

  /// Calls `f(tile, pair, i, slot)` for all weights; `slot` is the token's place in the block.
  template <class F>
  KVARTS_DEVICE static void each(int r, F&& f) {
    unrolled<pairs>([&](auto pair) {
      unrolled<2>(
          [&](auto i) { unrolled<Tiles>([&](auto t) { f(t, pair, i, Tokens::of(pair, i, r)); }); });
    });
  }

  /// `rows[t]` is the row of column g, from the span's first token on.
  KVARTS_DEVICE void load(float const* const (&rows)[Tiles], token_span span,
                          std::int64_t first_token, int r) {
    block_part const part(span, first_token, Block);
    if (part.whole()) {
      auto const first = static_cast<std::uint32_t>(first_token) -
                         static_cast<std::uint32_t>(span.begin) +
                         static_cast<std::uint32_t>(Tokens::of(0, 0, r));
      float const* from[Tiles];
      unrolled<Tiles>([&](auto t) { from[t] = rows[t] + first; });
      each(r, [&](auto t, auto pair, auto i, int) {
        values[t][pair][i] = from[t][Tokens::of(pair, i, 0)];
      });
    } else {
      auto const first = static_cast<int>(first_token - span.begin);
      each(r, [&](auto t, auto pair, auto i, int slot) {
        values[t][pair][i] = part.has(slot) ? rows[t][first + slot] : 0.0f;
      });
    }
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
  block_part const part(span, first_token, Block);
  auto const load_all = [&](auto&& exists) {
    unrolled<Block / 8>([&](auto pair) {
      unrolled<2>([&](auto i) {
        int const slot = coded_tokens::of(pair, i, r);
        out[pair][i] = exists(slot)
                           ? load_group<Format>(
                                 tile, index(static_cast<std::uint32_t>(tile.slot + slot)), lowest)
                           : group_values{0.0f, 0.0f};
      });
    });
  };
  if (part.whole()) {
    load_all([](int) { return true; });
  } else {
    load_all([&](int slot) { return part.has(slot); });
  }
}

}  // namespace kvarts::kernels
