// SPDX-License-Identifier: Apache-2.0
/// @file
/// Small integer and memory helpers that every layer uses: rounding, powers of two, unaligned
/// access.
#pragma once

#include <kvarts/config.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Records are little-endian byte formats and are moved with memcpy.
static_assert(std::endian::native == std::endian::little,
              "kvarts supports little-endian machines only");

namespace kvarts {

/// Smallest integer that is at least `n / d`; for `n >= 0`, `d > 0`.
constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t d) noexcept { return (n + d - 1) / d; }

/// Smallest multiple of `step` that is at least `n`; for `n >= 0`, `step > 0`.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t step) noexcept {
  return ceil_div(n, step) * step;
}

/// True for 1, 2, 4, ...
constexpr bool is_power_of_two(std::int64_t n) noexcept { return n > 0 && (n & (n - 1)) == 0; }

/// Largest power of two that divides `n`; for `n > 0`.
constexpr int power_of_two_factor(int n) noexcept { return n & -n; }

/// Reads a `T` from memory of any alignment.
template <class T>
T load_unaligned(std::byte const* from) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Writes a `T` to memory of any alignment.
template <class T>
void store_unaligned(std::byte* to, T const& value) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace kvarts
