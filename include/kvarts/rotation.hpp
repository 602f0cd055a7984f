// SPDX-License-Identifier: Apache-2.0
/// @file
/// The randomized Hadamard rotation that spreads a row's outliers over all channels.
#pragma once

#include <kvarts/bits.hpp>
#include <kvarts/numerics.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace kvarts {

/// R of the codecs: per round pseudo-random signs, then a Hadamard butterfly over blocks of B
/// channels, B the largest power of two that divides head_dim. Zero rounds mean no rotation.
/// `dense`, when set, is used instead: an orthonormal matrix `[head_dim, head_dim]` of the caller,
/// rows y = M x; it costs head_dim times as much, and files do not keep it.
struct rotation {
  std::int32_t rounds = 0;
  std::uint64_t seed = 1;
  float const* dense = nullptr;

  constexpr bool identity() const noexcept { return rounds == 0 && dense == nullptr; }

  friend constexpr bool operator==(rotation const&, rotation const&) = default;
};

/// Most rounds a rotation may have.
inline constexpr int max_rotation_rounds = 4;

namespace detail {

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014).
constexpr std::uint64_t mix64(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// Signs of channels 64 w .. 64 w + 63 in one round, a bit each; set means -1.
constexpr std::uint64_t sign_word(std::uint64_t seed, int round, int word) noexcept {
  auto const counter = static_cast<std::uint64_t>(1 + word + 16 * round);
  return mix64(seed + counter * 0x9E3779B97F4A7C15u);
}

/// A rotation made ready for rows of one head_dim. `Real` is float, or double for oracles.
template <class Real>
class prepared_rotation {
 public:
  prepared_rotation(rotation const& r, int head_dim) noexcept
      : rounds_(r.dense != nullptr ? 0 : r.rounds),
        head_dim_(head_dim),
        block_(power_of_two_factor(head_dim)),
        dense_(r.dense) {
    for (int round = 0; round < rounds_; ++round) {
      for (int d = 0; d < head_dim; ++d) {
        bool const negative = ((sign_word(r.seed, round, d / 64) >> (d % 64)) & 1u) != 0;
        signs_[round][d] = negative ? Real(-1) : Real(1);
      }
    }
    // log2 of the product of both directions' factors is that of H * H = B per round; an odd one
    // leaves the larger half to the query's side, so no irrational factor enters.
    int const total = rounds_ * std::countr_zero(static_cast<unsigned>(block_));
    forward_ = power(total / 2);
    inverse_ = power(total - total / 2);
  }

  bool identity() const noexcept { return rounds_ == 0 && dense_ == nullptr; }

  /// Rows as they are coded: signs, butterflies, times 2^-floor(rounds lg B / 2).
  void forward(Real* row) const noexcept { rotate(row, forward_); }

  /// Queries: R^-T, the same with 2^-ceil(rounds lg B / 2); q'.y is q.x exactly.
  void forward_query(Real* row) const noexcept { rotate(row, inverse_); }

  /// Decoded rows and outputs: R^-1, the rounds backwards, butterflies before signs.
  void inverse(Real* row) const noexcept {
    if (dense_ != nullptr) return multiply(row, 1, head_dim_);
    if (rounds_ == 0) return;
    for (int round = rounds_ - 1; round >= 0; --round) {
      butterflies(row);
      for (int d = 0; d < head_dim_; ++d) row[d] *= signs_[round][d];
    }
    for (int d = 0; d < head_dim_; ++d) row[d] *= inverse_;
  }

 private:
  static constexpr Real power(int exponent) noexcept {
    return Real(1) / static_cast<Real>(std::uint64_t{1} << exponent);
  }

  void rotate(Real* row, Real factor) const noexcept {
    if (dense_ != nullptr) return multiply(row, head_dim_, 1);
    if (rounds_ == 0) return;
    for (int round = 0; round < rounds_; ++round) {
      for (int d = 0; d < head_dim_; ++d) row[d] *= signs_[round][d];
      butterflies(row);
    }
    for (int d = 0; d < head_dim_; ++d) row[d] *= factor;
  }

  /// row = M row or its transpose, by the distances between outputs and between inputs in `dense_`;
  /// each sum is a fold.
  void multiply(Real* row, int output_stride, int input_stride) const noexcept {
    Real result[max_head_dim];
    Real products[max_head_dim];
    for (int i = 0; i < head_dim_; ++i) {
      float const* const from = dense_ + std::ptrdiff_t{i} * output_stride;
      for (int d = 0; d < head_dim_; ++d) {
        products[d] = Real(from[std::ptrdiff_t{d} * input_stride]) * row[d];
      }
      result[i] = fold(products, head_dim_);
    }
    std::copy(result, result + head_dim_, row);
  }

  void butterflies(Real* row) const noexcept {
    for (int begin = 0; begin < head_dim_; begin += block_) block_butterflies(row + begin);
  }

  void block_butterflies(Real* block) const noexcept {
    int distance = 1;
    if (block_ >= 4) {  // distances 1 and 2 at once: this way compilers vectorize them
      for (int i = 0; i < block_; i += 4) {
        Real const a = block[i] + block[i + 1];
        Real const b = block[i] - block[i + 1];
        Real const c = block[i + 2] + block[i + 3];
        Real const d = block[i + 2] - block[i + 3];
        block[i] = a + c;
        block[i + 1] = b + d;
        block[i + 2] = a - c;
        block[i + 3] = b - d;
      }
      distance = 4;
    }
    for (; distance < block_; distance *= 2) {
      for (int i = 0; i < block_; i += 2 * distance) {
        for (int j = i; j < i + distance; ++j) {
          Real const a = block[j];
          Real const b = block[j + distance];
          block[j] = a + b;
          block[j + distance] = a - b;
        }
      }
    }
  }

  int rounds_;
  int head_dim_;
  int block_;
  float const* dense_;
  Real forward_;
  Real inverse_;
  Real signs_[max_rotation_rounds][max_head_dim];
};

}  // namespace detail
}  // namespace kvarts
