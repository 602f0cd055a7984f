// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain 16-bit rows as operands. Sums over channels (of scores) and over tokens (of outputs) do
/// not depend on their order, so lanes take 16 neighbouring bytes of a row as their part.
#pragma once

#include <kvarts/kernels/blocks.cuh>
#include <kvarts/kernels/queries.cuh>

namespace kvarts::kernels {

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

/// Queries of a tile as the small operand of plain keys, and what their scores are multiplied by.
template <class Value, int HeadDim>
struct plain_query {
  static constexpr int steps = HeadDim / 16;
  small_pair<Value> words[steps][2];
  float unscale;

  /// `from` is the query of column g, zeros where it is null.
  KVARTS_DEVICE void load(float const* from, int r) {
    query_column<HeadDim> column;
    column.template load<row_channels<HeadDim>>(from, r);
    bool const halfs = std::is_same_v<Value, half>;
    power_scale const s =
        halfs ? scale_to(column.largest(), query_exponent) : power_scale{1.0f, 1.0f};
    unscale = s.inverse;
    unrolled<steps>([&](auto step) {
      unrolled<2>([&](auto i) {
        words[step][i].pack(column.values[step][2 * i] * s.factor,
                            column.values[step][2 * i + 1] * s.factor);
      });
    });
  }
};

/// A lane's parts of the keys of two tokens: rows g and g + 8 of an operand. Null rows are zeros.
template <int HeadDim>
struct key_rows {
  std::uint32_t words[2][HeadDim / 8];

  KVARTS_DEVICE void load(std::byte const* (&rows)[2], int r) {
    unrolled<2>([&](auto i) {
      unrolled<HeadDim / 32>(
          [&](auto c) { load_row_words<4>(rows[i], c * 64 + r * 16, words[i] + 4 * c); });
      if constexpr (HeadDim % 32 != 0) {
        load_row_words<2>(rows[i], HeadDim / 32 * 64 + r * 8, words[i] + HeadDim / 32 * 4);
      }
    });
  }

  /// `sums` += keys times queries.
  template <class Value, int Tiles>
  KVARTS_DEVICE void multiply(plain_query<Value, HeadDim> const (&queries)[Tiles],
                              float (&sums)[Tiles][4]) const {
    unrolled<HeadDim / 16>([&](auto step) {
      std::uint32_t const a[4] = {words[0][2 * step], words[1][2 * step], words[0][2 * step + 1],
                                  words[1][2 * step + 1]};
      unrolled<Tiles>([&](auto t) {
        multiply_add<Value>(sums[t], a, queries[t].words[step][0], queries[t].words[step][1]);
      });
    });
  }
};

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
  /// The lower of the two channels in word `Word` of lane group `g`.
  template <int Word>
  static constexpr int channel(int g) noexcept {
    constexpr int chunk = [] {
      int c = 0;
      while (c + 1 < count && Word >= first_word(c + 1)) ++c;
      return c;
    }();
    constexpr int first = first_word(chunk);
    return first * 16 + (Word - first) * 2 + g * (words(chunk) * 2);
  }
};

/// A lane's parts of the values of four tokens. Null rows are zeros.
template <int HeadDim>
struct value_rows {
  using chunks = value_chunks<HeadDim>;
  std::uint32_t words[4][HeadDim / 16];

  template <int Token>
  KVARTS_DEVICE void load(std::byte const* row, int g) {
    unrolled<chunks::count>([&](auto c) {
      constexpr int count = chunks::words(c);
      constexpr int first = chunks::first_word(c);
      load_row_words<count>(row, (first * 8 + g * count) * 4, words[Token] + first);
    });
  }

  /// `sums` += values times the weights of tokens 0, 1 and 2, 3.
  template <class Value, int Tiles>
  KVARTS_DEVICE void multiply(small_pair<Value> const (&weights)[Tiles][2],
                              float (&sums)[Tiles][HeadDim / 16][4]) const {
    unrolled<HeadDim / 16>([&](auto s) {
      std::uint32_t const a[4] = {byte_permute(words[0][s], words[1][s], 0x5410),
                                  byte_permute(words[0][s], words[1][s], 0x7632),
                                  byte_permute(words[2][s], words[3][s], 0x5410),
                                  byte_permute(words[2][s], words[3][s], 0x7632)};
      unrolled<Tiles>(
          [&](auto t) { multiply_add<Value>(sums[t][s], a, weights[t][0], weights[t][1]); });
    });
  }

  /// The channel of sum `Sum` (0..3) of a step.
  template <int Step, int Sum>
  static constexpr int channel(int g) noexcept {
    return chunks::template channel<Step>(g) + Sum / 2;
  }
};

}  // namespace kvarts::kernels
