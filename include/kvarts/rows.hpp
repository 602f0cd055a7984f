// SPDX-License-Identifier: Apache-2.0
/// @file
/// Rows of plain tensors to and from float32: where non-finite inputs are made finite and outputs
/// are rounded.
#pragma once

#include <kvarts/numerics.hpp>
#include <kvarts/view.hpp>

#include <bit>
#include <cstring>

namespace kvarts::detail {

/// By its bits, which no compiler flag touches and which vectorizes.
constexpr bool is_finite(float x) noexcept {
  return (std::bit_cast<std::uint32_t>(x) & 0x7F800000u) != 0x7F800000u;
}

/// NaN counts as 0, an infinity as the largest finite value of the input type.
constexpr float make_finite(float x, float largest) noexcept {
  if (x != x) return 0.0f;
  return x > largest ? largest : (x < -largest ? -largest : x);
}

/// Reads `n` elements as float32, makes them finite and returns how many were not.
template <class T>
std::int64_t load_finite(std::byte const* from, int n, float* to) noexcept {
  std::int32_t nonfinite = 0;
  if constexpr (std::is_same_v<T, float>) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
  } else {
    for (int i = 0; i < n; ++i) {
      to[i] = T::from_bits(load_unaligned<std::uint16_t>(from + 2 * i));
    }
  }
  for (int i = 0; i < n; ++i) {
    nonfinite += is_finite(to[i]) ? 0 : 1;
  }
  if (nonfinite == 0) return 0;
  for (int i = 0; i < n; ++i) to[i] = make_finite(to[i], largest_of(dtype_of<T>));
  return nonfinite;
}

/// `load_finite` for a type known at run time.
inline std::int64_t load_finite(dtype type, std::byte const* from, int n, float* to) noexcept {
  switch (type) {
    case dtype::f16: return load_finite<half>(from, n, to);
    case dtype::bf16: return load_finite<bfloat16>(from, n, to);
    default: return load_finite<float>(from, n, to);
  }
}

inline std::int64_t load_finite(source_view const& source, int head, std::int64_t token,
                                float* to) noexcept {
  return load_finite(source.type, source.row(head, token), source.map.head_dim, to);
}

/// Writes `n` floats as `T`: rounded to nearest even, saturated at the largest finite value.
template <class T>
void store_saturated(float const* from, int n, std::byte* to) noexcept {
  constexpr std::ptrdiff_t size = sizeof(T);
  for (int i = 0; i < n; ++i) store_unaligned(to + i * size, saturate<T>(from[i]));
}

/// `store_saturated` for a type known at run time.
inline void store_saturated(float const* from, int n, dtype type, std::byte* to) noexcept {
  switch (type) {
    case dtype::f16: return store_saturated<half>(from, n, to);
    case dtype::bf16: return store_saturated<bfloat16>(from, n, to);
    default: return store_saturated<float>(from, n, to);
  }
}

inline void store_saturated(float const* from, target_view const& target, int head,
                            std::int64_t token) noexcept {
  store_saturated(from, target.map.head_dim, target.type, target.row(head, token));
}

}  // namespace kvarts::detail
