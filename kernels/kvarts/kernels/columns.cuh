// SPDX-License-Identifier: Apache-2.0
/// @file
/// Columns of the small operand and of the sums: a lane feeds column g (a query head) of operand B
/// and receives columns 2r and 2r + 1 of the sums.
#pragma once

#include <kvarts/kernels/primitives.cuh>

#include <bit>

namespace kvarts::kernels {

/// A lane's place in the operands: lane = 4 g + r.
struct lane_place {
  int lane;
  int g;
  int r;
};

KVARTS_DEVICE lane_place place_of(int lane) {
  return {lane, static_cast<int>(static_cast<unsigned>(lane) / 4), lane & 3};
}
KVARTS_DEVICE lane_place place_of_lane() { return place_of(lane_index()); }

/// What a lane's sums begin with: its two columns in both of its rows.
struct alignas(16) sums_start {
  float values[4];
};

KVARTS_DEVICE sums_start start_with(float_pair columns) {
  return {{columns.low, columns.high, columns.low, columns.high}};
}

/// Sum over the four lanes of a column.
KVARTS_DEVICE float column_sum(float value) {
  value += shuffle_xor(value, 1);
  return value + shuffle_xor(value, 2);
}

/// Largest of non-negative values over the four lanes of a column.
KVARTS_DEVICE float column_max(float value) {
  value = larger(value, shuffle_xor(value, 1));
  return larger(value, shuffle_xor(value, 2));
}

/// A value that all lanes of column g share, for the columns that the lane's sums belong to.
KVARTS_DEVICE float_pair sums_columns(float of_column, int r) {
  return {shuffle(of_column, 8 * r), shuffle(of_column, 8 * r + 4)};
}

/// The power of two that brings a positive `largest` into [2^exponent, 2^(exponent + 1)), and its
/// inverse; both stay normal numbers. 1 for zero.
struct power_scale {
  float factor;
  float inverse;
};

/// 1 / p of a power of two between 2^-126 and 2^126.
KVARTS_DEVICE float inverse_power(float p) {
  return std::bit_cast<float>(0x7F000000u - std::bit_cast<std::uint32_t>(p));
}

KVARTS_DEVICE power_scale scale_to(float largest, int exponent) {
  int const found = static_cast<int>(std::bit_cast<std::uint32_t>(largest) >> 23) - 127;
  int shift = largest > 0.0f ? exponent - found : 0;
  shift = shift > 120 ? 120 : (shift < -120 ? -120 : shift);
  return {std::bit_cast<float>(static_cast<std::uint32_t>(127 + shift) << 23),
          std::bit_cast<float>(static_cast<std::uint32_t>(127 - shift) << 23)};
}

}  // namespace kvarts::kernels
