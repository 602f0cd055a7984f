// SPDX-License-Identifier: Apache-2.0
/// @file
/// Products with plain 16-bit rows: windows, unquantized layers, and the baseline of all speed
/// ratios. Sums over channels (of scores) and over tokens (of outputs) do not depend on their
/// order, so lanes take 16 neighbouring bytes of a row as their part of an operand.
#pragma once

#include <kvarts/kernels/gemv_pv.cuh>
#include <kvarts/kernels/gemv_qk.cuh>

namespace kvarts::kernels {

/// Tokens that a warp works on at a time.
inline constexpr int row_block = 16;

/// The row of a token; null outside the span.
KVARTS_DEVICE std::byte const* find_row(block_map const& m, int sequence, int head, token_span span,
                                        std::int64_t token, int row_bytes) {
  if (token < span.begin || token >= span.end) return nullptr;
  tile_place const tile = find_tile(m, sequence, head, token);
  return tile.codes + std::int64_t{tile.slot} * row_bytes;
}

/// Loads `Words` (1, 2 or 4) words; zeros from a null row.
template <int Words>
KVARTS_DEVICE void load_row_words(std::byte const* row, int offset, std::uint32_t* to) {
  unrolled<Words>([&](auto i) { to[i] = 0; });
  if (row == nullptr) return;
  if constexpr (Words == 4) {
    words4 const v = load_once_16(row + offset);
    unrolled<4>([&](auto i) { to[i] = v.w[i]; });
  } else if constexpr (Words == 2) {
    load_once_8(row + offset, to[0], to[1]);
  } else {
    to[0] = load_once_4(row + offset);
  }
}

/// Channels of a lane at a step: 8 neighbours for two steps, 4 for a last single one.
template <int HeadDim>
struct row_channels {
  static constexpr int of(int step, int i, int r) noexcept {
    if (step < HeadDim / 32 * 2) return step / 2 * 32 + 8 * r + step % 2 * 4 + i;
    return 16 * step + 4 * r + i;
  }
};

/// Two floats as the upper halves of their bits: bfloat16s, cut off.
KVARTS_DEVICE std::uint32_t cut_to_bf16(float low, float high) {
  return byte_permute(std::bit_cast<std::uint32_t>(low), std::bit_cast<std::uint32_t>(high),
                      0x7632);
}

/// What cutting to bfloat16 left.
KVARTS_DEVICE float behind_bf16(float x) {
  return x - std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xFFFF0000u);
}

/// A pair of the small operand: one register of halfs, or two of bfloat16s that add up to 16 bits
/// of precision.
template <class Value>
struct small_pair {
  static constexpr int parts = std::is_same_v<Value, half> ? 1 : 2;
  std::uint32_t words[parts];

  KVARTS_DEVICE void pack(float low, float high) {
    if constexpr (parts == 1) {
      words[0] = pack_half2(low, high);
    } else {
      words[0] = cut_to_bf16(low, high);
      words[1] = cut_to_bf16(behind_bf16(low), behind_bf16(high));
    }
  }
};

template <class Value>
KVARTS_DEVICE void multiply_add(float (&sums)[4], std::uint32_t const (&a)[4],
                                small_pair<Value> const& first, small_pair<Value> const& second) {
  unrolled<small_pair<Value>::parts>([&](auto part) {
    std::uint32_t const b[2] = {first.words[part], second.words[part]};
    if constexpr (std::is_same_v<Value, half>) {
      mma_f16(sums, a, b);
    } else {
      mma_bf16(sums, a, b);
    }
  });
}

/// Scores with plain rows.
template <class Value, int HeadDim, int Tiles>
KVARTS_KERNEL(gemv_warps* warp_lanes, (gemv_blocks<HeadDim, Tiles>))
gemv_qk_plain_kernel(qk_arguments a) {
  constexpr int steps = HeadDim / 16;
  warp_work const w = find_work<row_block, 8 * Tiles>(a.map.batch, a.column_tiles);
  if (w.first >= w.end) return;
  lane_place const lane = place_of_lane();
  std::int64_t const first_row =
      std::int64_t{w.sequence} * a.queries.query_heads + std::int64_t{w.head} * a.queries.shared;
  small_pair<Value> operand[Tiles][steps][2];
  score_columns columns[Tiles];
  unrolled<Tiles>([&](auto t) {
    query_column<HeadDim> column;
    column.template load<row_channels<HeadDim>>(
        find_query<HeadDim>(a.queries, first_row, w.first_column + 8 * t + lane.g), lane.r);
    bool const halfs = std::is_same_v<Value, half>;
    power_scale const s =
        halfs ? scale_to(column.largest(), query_exponent) : power_scale{1.0f, 1.0f};
    unrolled<steps>([&](auto step) {
      unrolled<2>([&](auto i) {
        operand[t][step][i].pack(column.values[step][2 * i] * s.factor,
                                 column.values[step][2 * i + 1] * s.factor);
      });
    });
    columns[t].find(a.queries, first_row, w.first_column + 8 * t, lane.r, a.map.batch.max_tokens,
                    s.inverse);
  });
  for (std::int64_t block = w.first; block < w.end; block += w.stride) {
    std::uint32_t rows[2][HeadDim / 8];
    unrolled<2>([&](auto i) {
      std::byte const* const row = find_row(a.map, w.sequence, w.head, w.span,
                                            block * row_block + lane.g + 8 * i, HeadDim * 2);
      unrolled<HeadDim / 32>(
          [&](auto c) { load_row_words<4>(row, c * 64 + lane.r * 16, rows[i] + 4 * c); });
      if constexpr (HeadDim % 32 != 0) {
        load_row_words<2>(row, HeadDim / 32 * 64 + lane.r * 8, rows[i] + HeadDim / 32 * 4);
      }
    });
    float sums[Tiles][4] = {};
    unrolled<steps>([&](auto step) {
      std::uint32_t const words[4] = {rows[0][2 * step], rows[1][2 * step], rows[0][2 * step + 1],
                                      rows[1][2 * step + 1]};
      unrolled<Tiles>([&](auto t) {
        multiply_add<Value>(sums[t], words, operand[t][step][0], operand[t][step][1]);
      });
    });
    store_half(columns, w.span, block * row_block + lane.g, sums);
  }
}

/// How a row is cut for p.V: 64 channels are 16 bytes for each of 8 lanes; what is left 8 or 4.
template <int HeadDim>
struct value_chunks {
  static constexpr int count = HeadDim / 64 + HeadDim % 64 / 32 + HeadDim % 32 / 16;

  static constexpr int words(int chunk) noexcept {
    if (chunk < HeadDim / 64) return 4;
    return chunk == HeadDim / 64 && HeadDim % 64 >= 32 ? 2 : 1;
  }
  static constexpr int first_word(int chunk) noexcept {
    int sum = 0;
    for (int i = 0; i < chunk; ++i) sum += words(i);
    return sum;
  }
  /// The lower of the two channels in word `word` of lane group `g`.
  static constexpr int channel(int word, int g) noexcept {
    int chunk = 0;
    while (chunk + 1 < count && word >= first_word(chunk + 1)) ++chunk;
    return first_word(chunk) * 16 + g * words(chunk) * 2 + (word - first_word(chunk)) * 2;
  }
};

/// Weighted sums of plain rows, one part of the tokens.
template <class Value, int HeadDim, int Tiles>
KVARTS_KERNEL(gemv_warps* warp_lanes, (gemv_blocks<HeadDim, Tiles>))
gemv_pv_plain_kernel(pv_arguments a) {
  using chunks = value_chunks<HeadDim>;
  constexpr int steps = HeadDim / 16;
  constexpr int columns = 8 * Tiles;
  auto* const shared = reinterpret_cast<float*>(shared_memory());
  int const sequence = block_index_z();
  int const head = block_index_y() / a.column_tiles;
  int const first_column = block_index_y() % a.column_tiles * columns;
  token_span const span = span_of(a.map.batch, sequence);
  split_span const part = find_split(span, row_block, grid_blocks(), block_index());
  if (part.first >= part.end) return;
  lane_place const lane = place_of_lane();
  std::int64_t const first_row =
      std::int64_t{sequence} * a.weights.query_heads + std::int64_t{head} * a.weights.shared;
  float const* weight_rows_of[Tiles];
  find_weight_rows(a.weights, first_row, first_column, lane.g, a.map.batch.max_tokens,
                   weight_rows_of);

  float sums[Tiles][steps][4] = {};
  power_scale scales[Tiles];
  bool const halfs = std::is_same_v<Value, half>;
  unrolled<Tiles>([&](auto t) {
    scales[t] = halfs ? first_weight_scale() : power_scale{1.0f, 1.0f};
  });
  for (std::int64_t block = part.first + warp_index(); block < part.end; block += gemv_warps) {
    std::uint32_t rows[4][HeadDim / 16];
    unrolled<4>([&](auto i) {
      std::byte const* const row =
          find_row(a.map, sequence, head, span, block * row_block + 4 * lane.r + i, HeadDim * 2);
      unrolled<chunks::count>([&](auto c) {
        constexpr int words = chunks::words(c);
        constexpr int first = chunks::first_word(c);
        load_row_words<words>(row, (first * 8 + lane.g * words) * 4, rows[i] + first);
      });
    });
    block_weights<row_block, Tiles, row_tokens> weights;
    weights.load(weight_rows_of, span, block * row_block, lane.r);
    if constexpr (std::is_same_v<Value, half>) {
      float largest[Tiles];
      unrolled<Tiles>([&](auto t) { largest[t] = weights.largest(t); });
      fit_scales(largest, scales, lane.r, [&](auto t, float, float_pair ratio) {
        unrolled<4>([&](auto i) {
          float const factor = i % 2 == 0 ? ratio.low : ratio.high;
          unrolled<steps>([&](auto s) { sums[t][s][i] *= factor; });
        });
      });
    }
    small_pair<Value> operand[Tiles][2];
    unrolled<Tiles>([&](auto t) {
      unrolled<2>([&](auto i) {
        operand[t][i].pack(weights.values[t][i][0] * scales[t].factor,
                           weights.values[t][i][1] * scales[t].factor);
      });
    });
    unrolled<steps>([&](auto s) {
      std::uint32_t const words[4] = {byte_permute(rows[0][s], rows[1][s], 0x5410),
                                      byte_permute(rows[0][s], rows[1][s], 0x7632),
                                      byte_permute(rows[2][s], rows[3][s], 0x5410),
                                      byte_permute(rows[2][s], rows[3][s], 0x7632)};
      unrolled<Tiles>(
          [&](auto t) { multiply_add<Value>(sums[t][s], words, operand[t][0], operand[t][1]); });
    });
  }
  float* const to = shared + warp_index() * columns * HeadDim;
  unrolled<Tiles>([&](auto t) {
    float_pair const inverse = sums_columns(scales[t].inverse, lane.r);
    unrolled<steps>([&](auto s) {
      unrolled<4>([&](auto k) {
        int const column = 8 * t + 2 * lane.r + k % 2;
        int const channel = chunks::channel(s, lane.g) + k / 2;
        to[column * HeadDim + channel] = sums[t][s][k] * (k % 2 == 0 ? inverse.low : inverse.high);
      });
    });
  });
  block_barrier();
  store_block_sums<HeadDim, columns>(shared, a, first_row, first_column);
}

}  // namespace kvarts::kernels
