// SPDX-License-Identifier: Apache-2.0
/// @file
/// Online softmax of a warp, in powers of two, with a maximum that may be stale: sums are rescaled
/// only when a score exceeds it by 8.
#pragma once

#include <kvarts/kernels/columns.cuh>
#include <kvarts/kernels/unroll.cuh>

namespace kvarts::kernels {

/// How far a score may exceed the maximum: weights stay below 2^8.
inline constexpr float stale_limit = 8.0f;

/// Threshold of a column that has seen no score yet: any score exceeds it.
inline constexpr float no_score = -1e30f;

/// The maximum that parts without a score have.
inline constexpr float empty_maximum = -1e30f;

/// Factor and addend that turn the sums of a product into scores in powers of two.
struct score_line {
  float scale[2];
  float offset[2];
};

/// Maximum over the eight lanes that share a lane's columns.
KVARTS_DEVICE float rows_max(float v) {
  unrolled<3>([&](auto i) { v = larger(v, shuffle_xor(v, 4 << i)); });
  return v;
}

/// Sum over the eight lanes that share a lane's columns.
KVARTS_DEVICE float rows_sum(float v) {
  unrolled<3>([&](auto i) { v += shuffle_xor(v, 4 << i); });
  return v;
}

/// Running softmax of the two columns of the sums that a lane holds, of each tile; lanes sum up
/// their own tokens.
template <int Tiles, int Halves>
struct online_softmax {
  float maximum[Tiles][2] = {};
  float threshold[Tiles][2];
  float sum[Tiles][2] = {};

  KVARTS_DEVICE online_softmax() {
    unrolled<Tiles>([&](auto t) { threshold[t][0] = threshold[t][1] = no_score; });
  }

  /// True where a score exceeds its maximum too far, of which `differences` are to it.
  KVARTS_DEVICE bool exceeds(float const (&differences)[Halves][Tiles][4]) const {
    bool over = false;
    unrolled<Halves>([&](auto h) {
      unrolled<Tiles>([&](auto t) {
        // Without branches: each is one comparison.
        unrolled<4>([&](auto i) { over |= differences[h][t][i] > threshold[t][i % 2]; });
      });
    });
    return over;
  }

  /// Raises maxima to the largest difference where it exceeds; `rescale(tile, factors)` is told
  /// what the sums of the lane's columns are multiplied by.
  template <class F>
  KVARTS_DEVICE void raise(float (&differences)[Halves][Tiles][4], F&& rescale) {
    unrolled<Tiles>([&](auto t) {
      float factors[2];
      unrolled<2>([&](auto c) {
        float const most = rows_max(largest<t, c>(differences));
        bool const raised = most > threshold[t][c];
        float const by = raised ? most : 0.0f;
        // Sums without a score are zeros: nothing may make them NaN.
        bool const first = threshold[t][c] < 0.0f;
        factors[c] = first ? 1.0f : exp2_approx(-by);
        maximum[t][c] += by;
        threshold[t][c] = raised ? stale_limit : threshold[t][c];
        sum[t][c] *= factors[c];
        unrolled<Halves>([&](auto h) {
          differences[h][t][c] -= by;
          differences[h][t][2 + c] -= by;
        });
      });
      rescale(t, float_pair{factors[0], factors[1]});
    });
  }

  /// Differences become weights, which are summed up.
  KVARTS_DEVICE void weigh(float (&differences)[Halves][Tiles][4]) {
    unrolled<Halves>([&](auto h) {
      unrolled<Tiles>([&](auto t) {
        unrolled<4>([&](auto i) {
          differences[h][t][i] = exp2_approx(differences[h][t][i]);
          sum[t][i % 2] += differences[h][t][i];
        });
      });
    });
  }

  /// Sums of all lanes, and the maxima of columns, `empty_maximum` where there was no score.
  KVARTS_DEVICE void finish() {
    unrolled<Tiles>([&](auto t) {
      unrolled<2>([&](auto c) {
        sum[t][c] = rows_sum(sum[t][c]);
        maximum[t][c] = threshold[t][c] < 0.0f ? empty_maximum : maximum[t][c];
      });
    });
  }

 private:
  template <int Tile, int Column>
  KVARTS_DEVICE static float largest(float const (&differences)[Halves][Tiles][4]) {
    float m = no_score;
    unrolled<Halves>([&](auto h) {
      m = larger(m, larger(differences[h][Tile][Column], differences[h][Tile][2 + Column]));
    });
    return m;
  }
};

}  // namespace kvarts::kernels
