// SPDX-License-Identifier: Apache-2.0
/// @file
/// `half` (IEEE binary16) and `bfloat16`: storage types with exact conversions to float and
/// round-to-nearest-even conversions from it. They hold bits; arithmetic happens in float.
#pragma once

#include <kvarts/config.hpp>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace kvarts {

namespace detail {

/// binary16 bits to float: exact; a signalling NaN comes back quiet, as F16C does. Selections
/// instead of branches let compilers vectorize it, and subnormals go through an integer, so that
/// the result does not depend on how the thread treats subnormal floats.
constexpr float half_bits_to_float(std::uint16_t h) noexcept {
  std::uint32_t const magnitude = h & 0x7FFFu;
  std::uint32_t const shifted = magnitude << 13;
  auto const subnormal = std::bit_cast<std::uint32_t>(
      static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
  std::uint32_t const quiet = magnitude > 0x7C00u ? 0x00400000u : 0u;
  std::uint32_t bits = shifted + (112u << 23);  // 112 = 127 - 15: the exponents' biases
  bits = magnitude >= 0x7C00u ? (shifted | 0x7F800000u | quiet) : bits;
  bits = magnitude < 0x0400u ? subnormal : bits;
  return std::bit_cast<float>(bits | (static_cast<std::uint32_t>(h & 0x8000u) << 16));
}

/// float to binary16 bits: nearest even, subnormals kept, overflow to infinity, NaN quiet with the
/// upper payload bits.
constexpr std::uint16_t float_to_half_bits(float value) noexcept {
  std::uint32_t const bits = std::bit_cast<std::uint32_t>(value);
  auto const sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  std::uint32_t const magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {
    return static_cast<std::uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  }
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // >= 65520
  if (magnitude >= 0x38800000u) {  // >= 2^-14: normal
    std::uint32_t const rebased = magnitude - (112u << 23);
    std::uint32_t const rounded = rebased + 0xFFFu + ((rebased >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | (rounded >> 13));
  }
  if (magnitude <= 0x33000000u) return sign;  // <= 2^-25: the tie goes to even, which is zero
  // A subnormal counts units of 2^-24: shift the 24-bit significand right and round the rest.
  std::uint32_t const significand = (magnitude & 0x7FFFFFu) | 0x800000u;
  std::uint32_t const shift = 126u - (magnitude >> 23);  // 14..24
  std::uint32_t const kept = significand >> shift;
  std::uint32_t const rest = significand & ((1u << shift) - 1u);
  std::uint32_t const midpoint = 1u << (shift - 1u);
  std::uint32_t const up = (rest > midpoint || (rest == midpoint && (kept & 1u) != 0)) ? 1u : 0u;
  return static_cast<std::uint16_t>(sign | (kept + up));
}

/// float to bfloat16 bits: nearest even, overflow to infinity, NaN quiet.
constexpr std::uint16_t float_to_bfloat16_bits(float value) noexcept {
  std::uint32_t const bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace detail

/// IEEE binary16 in two bytes. Source: IEEE 754-2019.
struct half {
  std::uint16_t bits = 0;

  half() = default;
  /// Rounds to nearest even; overflows to infinity (`saturate<half>` clamps instead).
  constexpr explicit half(float value) noexcept : bits(detail::float_to_half_bits(value)) {}
  constexpr operator float() const noexcept { return detail::half_bits_to_float(bits); }
  static constexpr half from_bits(std::uint16_t b) noexcept {
    half h;
    h.bits = b;
    return h;
  }
  static constexpr float largest = 65504.0f;
};

/// The upper 16 bits of a float, rounded to nearest even.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  /// Rounds to nearest even; overflows to infinity (`saturate<bfloat16>` clamps instead).
  constexpr explicit bfloat16(float value) noexcept : bits(detail::float_to_bfloat16_bits(value)) {}
  constexpr operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  static constexpr bfloat16 from_bits(std::uint16_t b) noexcept {
    bfloat16 x;
    x.bits = b;
    return x;
  }
  static constexpr float largest = 0x1.FEp127f;
};

/// Rounds to `T` and clamps to its largest finite value; `fp16(.)` and `bf16(.)` of the codecs.
/// NaN passes through (encoders never meet one). `saturate<float>` is the identity on finite
/// values.
template <class T>
constexpr T saturate(float value) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    constexpr float largest = 0x1.FFFFFEp127f;
    return value > largest ? largest : (value < -largest ? -largest : value);
  } else {
    return T(value > T::largest ? T::largest : (value < -T::largest ? -T::largest : value));
  }
}

}  // namespace kvarts
