// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the bits of a 16-bit float mean, straight from IEEE 754: sign, exponent, fraction. Nothing
/// here is shared with the conversions that it judges.
#pragma once

#include <kvarts/float16.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace kvarts::test {

/// Bits of the fraction, the exponent's bias, the pattern of +infinity and the bit of quiet NaNs.
template <class T>
struct format {
  static constexpr bool is_half = std::is_same_v<T, half>;
  static constexpr int fraction_bits = is_half ? 10 : 7;
  static constexpr int bias = is_half ? 15 : 127;
  static constexpr std::uint16_t infinity = is_half ? 0x7C00 : 0x7F80;
  static constexpr std::uint16_t quiet = 1 << (fraction_bits - 1);
};

/// Magnitude of a pattern, exact. The pattern of infinity gives the next power of two, which is
/// what rounding at the upper end compares with.
template <class T>
double magnitude_of(std::uint16_t bits) {
  constexpr int fraction_bits = format<T>::fraction_bits;
  int const magnitude = bits & 0x7FFF;
  int const fraction = magnitude & ((1 << fraction_bits) - 1);
  int const exponent = magnitude >> fraction_bits;
  int const implicit = exponent == 0 ? 0 : 1 << fraction_bits;
  int const power = (exponent == 0 ? 1 : exponent) - format<T>::bias - fraction_bits;
  return std::ldexp(fraction + implicit, power);
}

/// The pattern that a NaN becomes: quiet, with its sign and the upper bits of its payload.
template <class T>
std::uint16_t quiet_pattern(std::uint32_t nan_bits) {
  std::uint32_t const payload = (nan_bits & 0x7FFFFFu) >> (23 - format<T>::fraction_bits);
  return static_cast<std::uint16_t>(((nan_bits >> 16) & 0x8000u) | format<T>::infinity |
                                    format<T>::quiet | payload);
}

}  // namespace kvarts::test
