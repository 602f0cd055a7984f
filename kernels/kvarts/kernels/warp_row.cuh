// SPDX-License-Identifier: Apache-2.0
/// @file
/// A row of one head in the registers of a warp, on its way from an engine's tensor to coded space
/// and back: the same float32 operations in the same order as the host's `prepared_transform`.
#pragma once

#include <kvarts/kernels/here.cuh>
#include <kvarts/kernels/memory.cuh>
#include <kvarts/kernels/warp_group.cuh>
#include <kvarts/rows.hpp>
#include <kvarts/transform.hpp>
#include <kvarts/view.hpp>

#include <bit>
#include <cstdint>

namespace kvarts::kernels {

/// Registers of a row in each lane: channel d is in slot d / 32 of lane d % 32.
inline constexpr int row_slots = 8;

/// Largest head_dim that a warp holds.
inline constexpr int max_row_dim = row_slots * warp_lanes;

/// A transform made ready for a warp's rows.
class warp_transform {
 public:
  KVARTS_DEVICE warp_transform(transform_view const& t, int head_dim)
      : center_(t.center),
        norm_(t.norm),
        head_stride_(t.head_stride),
        dense_(t.rotate.dense),
        lane_(lane_here()),
        head_dim_(head_dim),
        block_(power_of_two_factor(head_dim)),
        rounds_(t.rotate.dense != nullptr ? 0 : t.rotate.rounds) {
    static_assert(max_rotation_rounds * row_slots <= 32);
    for (int round = 0; round < rounds_; ++round) {
      KVARTS_UNROLL
      for (int s = 0; s < row_slots; ++s) {
        std::uint64_t const word = detail::sign_word(t.rotate.seed, round, s / 2);
        auto const negative = static_cast<std::uint32_t>(word >> (s % 2 * 32 + lane_) & 1u);
        signs_ |= negative << (round * row_slots + s);
      }
    }
    int const total = rounds_ * std::countr_zero(static_cast<unsigned>(block_));
    forward_ = power(-(total / 2));
    inverse_ = power(-(total - total / 2));
  }

  KVARTS_DEVICE int head_dim() const { return head_dim_; }

  /// Center, norm and clamp.
  KVARTS_DEVICE void normalize(int head, float (&x)[row_slots], bool clamp_rows) const {
    bool const rotates = rounds_ > 0 || dense_ != nullptr;
    bool const divides = center_ != nullptr || norm_ != nullptr;
    float const limit = clamp_rows || rotates ? detail::row_limit : 0x1.FFFFFEp127f;
    for_each_number([&](int d, int s) {
      if (center_ != nullptr) x[s] = detail::subtract(x[s], center_[head * head_stride_ + d]);
      if (norm_ != nullptr) x[s] = detail::divide(x[s], norm_[head * head_stride_ + d]);
      if (clamp_rows || rotates || divides) x[s] = detail::clamp_magnitude(x[s], limit);
    });
  }

  /// The rotation of rows that are coded.
  KVARTS_DEVICE void rotate(float (&x)[row_slots]) const { rotate_by(x, forward_); }

  /// The way back, of rows and of outputs.
  KVARTS_DEVICE void unrotate(float (&x)[row_slots]) const {
    if (dense_ != nullptr) return multiply(x, 1, head_dim_);
    if (rounds_ == 0) return;
    for (int round = rounds_ - 1; round >= 0; --round) {
      butterflies(x);
      flip_signs(x, round);
    }
    scale(x, inverse_);
  }

  /// A query for products with coded rows; returns this lane's part of the bias q.center.
  KVARTS_DEVICE float fold_query(int head, float (&x)[row_slots]) const {
    float bias = 0.0f;
    for_each_number([&](int d, int s) {
      if (center_ != nullptr) bias = fused(x[s], center_[head * head_stride_ + d], bias);
      if (norm_ != nullptr) x[s] = detail::multiply(x[s], norm_[head * head_stride_ + d]);
    });
    rotate_by(x, inverse_);
    return bias;
  }

  /// Coded space to model space.
  KVARTS_DEVICE void to_model(int head, float (&x)[row_slots]) const {
    unrotate(x);
    for_each_number([&](int d, int s) {
      if (norm_ != nullptr) x[s] = detail::multiply(x[s], norm_[head * head_stride_ + d]);
      if (center_ != nullptr) x[s] = detail::add(x[s], center_[head * head_stride_ + d]);
    });
  }

  /// Calls `f(channel, slot)` for this lane's channels.
  template <class F>
  KVARTS_DEVICE void for_each_number(F f) const {
    KVARTS_UNROLL
    for (int s = 0; s < row_slots; ++s) {
      int const d = s * warp_lanes + lane_;
      if (d < head_dim_) f(d, s);
    }
  }

 private:
  /// 2^exponent, for exponents of normal numbers.
  static constexpr float power(int exponent) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(127 + exponent) << 23);
  }

  KVARTS_DEVICE void rotate_by(float (&x)[row_slots], float factor) const {
    if (dense_ != nullptr) return multiply(x, head_dim_, 1);
    if (rounds_ == 0) return;
    for (int round = 0; round < rounds_; ++round) {
      flip_signs(x, round);
      butterflies(x);
    }
    scale(x, factor);
  }

  KVARTS_DEVICE void scale(float (&x)[row_slots], float factor) const {
    KVARTS_UNROLL
    for (int s = 0; s < row_slots; ++s) x[s] = detail::multiply(x[s], factor);
  }

  KVARTS_DEVICE void flip_signs(float (&x)[row_slots], int round) const {
    std::uint32_t const signs = signs_ >> (round * row_slots);
    KVARTS_UNROLL
    for (int s = 0; s < row_slots; ++s) x[s] = negated_by(signs << (31 - s), x[s]);
  }

  /// -x where the highest bit of `sign` is set; no predicate, of which a lane has seven.
  KVARTS_DEVICE static float negated_by(std::uint32_t sign, float x) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ (sign & 0x80000000u));
  }

  /// (a, b) -> (a + b, a - b) at distances 1, 2, ... block / 2: across lanes below 32, in each lane
  /// from there on.
  KVARTS_DEVICE void butterflies(float (&x)[row_slots]) const {
    KVARTS_UNROLL
    for (int distance = 1; distance < warp_lanes; distance *= 2) {
      if (distance >= block_) break;
      std::uint32_t const upper = static_cast<std::uint32_t>(lane_)
                                  << (31 - std::countr_zero(static_cast<unsigned>(distance)));
      KVARTS_UNROLL
      for (int s = 0; s < row_slots; ++s) {
        if (s * warp_lanes >= head_dim_) break;
        float const other = shuffle_xor(x[s], distance);
        x[s] = detail::add(other, negated_by(upper, x[s]));
      }
    }
    KVARTS_UNROLL
    for (int step = 1; step < row_slots; step *= 2) {
      if (step * warp_lanes >= block_) break;
      KVARTS_UNROLL
      for (int s = 0; s < row_slots; ++s) {
        if ((s & step) != 0 || s * warp_lanes >= head_dim_) continue;
        float const a = x[s];
        float const b = x[s + step];
        x[s] = detail::add(a, b);
        x[s + step] = detail::subtract(a, b);
      }
    }
  }

  /// x = M x or its transpose, by the distances between outputs and between inputs in `dense_`;
  /// each sum is a fold.
  KVARTS_DEVICE void multiply(float (&x)[row_slots], std::int64_t output_stride,
                              std::int64_t input_stride) const {
    float result[row_slots] = {};
    for (int i = 0; i < head_dim_; ++i) {
      float const* const from = dense_ + i * output_stride;
      warp_group<row_slots> const products(
          head_dim_, [&](int d, int s) { return detail::multiply(from[d * input_stride], x[s]); });
      float const sum = products.fold([](float product) { return product; });
      KVARTS_UNROLL
      for (int s = 0; s < row_slots; ++s) {
        result[s] = i == s * warp_lanes + lane_ ? sum : result[s];
      }
    }
    KVARTS_UNROLL
    for (int s = 0; s < row_slots; ++s) x[s] = result[s];
  }

  float const* center_;
  float const* norm_;
  std::int64_t head_stride_;
  float const* dense_;
  int lane_;
  int head_dim_;
  int block_;
  int rounds_;
  std::uint32_t signs_ = 0;  ///< bit round * 8 + slot: this lane's channel changes its sign
  float forward_;
  float inverse_;
};

/// Reads number d of a row; the row lies at a multiple of its type's size.
KVARTS_DEVICE float load_number(dtype type, std::byte const* row, int d) {
  if (type == dtype::f32) return load_aligned<float>(row + 4 * d);
  auto const bits = load_aligned<std::uint16_t>(row + 2 * d);
  if (type == dtype::f16) return half_to_float(bits);
  return bfloat16::from_bits(bits);
}

/// Writes number d of a row, rounded to nearest even and saturated.
KVARTS_DEVICE void store_number(dtype type, std::byte* row, int d, float x) {
  if (type == dtype::f32) return store_aligned(row + 4 * d, saturate<float>(x));
  std::uint16_t const bits =
      type == dtype::f16 ? saturate<half>(x).bits : saturate<bfloat16>(x).bits;
  store_aligned(row + 2 * d, bits);
}

/// Loads this lane's numbers of a row, makes them finite and returns how many were not.
KVARTS_DEVICE std::int32_t load_row(source_view const& source, int head, std::int64_t token,
                                    float (&x)[row_slots]) {
  std::byte const* const row = source.row(head, token);
  float const largest = detail::largest_of(source.type);
  std::int32_t nonfinite = 0;
  KVARTS_UNROLL
  for (int s = 0; s < row_slots; ++s) {
    int const d = s * warp_lanes + lane_index();
    x[s] = d < source.map.head_dim ? load_number(source.type, row, d) : 0.0f;
    if (!detail::is_finite(x[s])) {
      x[s] = detail::make_finite(x[s], largest);
      ++nonfinite;
    }
  }
  return nonfinite;
}

}  // namespace kvarts::kernels
