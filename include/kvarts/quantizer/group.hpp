// SPDX-License-Identifier: Apache-2.0
/// @file
/// The numbers that share parameters, as quantizers see them: one text of a quantizer serves the
/// host, where a group is an array, and the device, where a warp holds it in registers.
#pragma once

#include <kvarts/numerics.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace kvarts {

namespace detail {

/// Two sums of one pass.
struct two_sums {
  float first;
  float second;
};

/// The least and the largest number of a group; -0 is below +0.
struct extremes {
  float minimum;
  float maximum;
};

/// Bits of a number without its sign; those of finite numbers order as their magnitudes do.
constexpr std::int32_t magnitude_bits(float x) noexcept {
  return std::bit_cast<std::int32_t>(x) & 0x7FFFFFFF;
}

/// Floats as integers of the same order, so that minimum and maximum vectorize.
constexpr std::int32_t ordered_bits(float value) noexcept {
  std::int32_t const b = std::bit_cast<std::int32_t>(value);
  return b ^ ((b >> 31) & 0x7FFFFFFF);
}
constexpr float from_ordered_bits(std::int32_t key) noexcept {
  return std::bit_cast<float>(key ^ ((key >> 31) & 0x7FFFFFFF));
}

/// Room for a fold: as large as a length known at compile time needs, else for `max_head_dim`.
template <class Length>
inline constexpr int fold_capacity = max_head_dim;
template <int N>
inline constexpr int fold_capacity<std::integral_constant<int, N>> =
    fold_length(std::integral_constant<int, N>{});

/// A group of the host: numbers x[0..n) and room for n codes. The device's `warp_group` has the
/// same members; sums are folds in both, so quantizers written with them store the same bytes.
/// `Length` is int, or std::integral_constant<int, n> to let compilers unroll and vectorize.
template <class Length>
class array_group {
 public:
  /// Room for a second set of codes.
  struct more_codes {
    std::uint8_t codes[fold_capacity<Length>];
  };

  KVARTS_HOST_DEVICE array_group(float const* x, Length n, std::uint8_t* codes) noexcept
      : x_(x), n_(n), codes_(codes) {}

  KVARTS_HOST_DEVICE int size() const noexcept { return n_; }

  KVARTS_HOST_DEVICE float largest_magnitude() const noexcept {
    std::int32_t largest = 0;
    for (int i = 0; i < n_; ++i) {
      std::int32_t const magnitude = magnitude_bits(x_[i]);
      largest = magnitude > largest ? magnitude : largest;
    }
    return std::bit_cast<float>(largest);
  }

  /// The first number of largest magnitude.
  KVARTS_HOST_DEVICE float first_largest() const noexcept {
    float const largest = largest_magnitude();
    int i = 0;
    while (i < n_ - 1 && std::fabs(x_[i]) != largest) ++i;
    return x_[i];
  }

  KVARTS_HOST_DEVICE extremes find_extremes() const noexcept {
    std::int32_t lowest = ordered_bits(x_[0]);
    std::int32_t highest = lowest;
    for (int i = 0; i < n_; ++i) {  // from 0: whole vectors
      std::int32_t const key = ordered_bits(x_[i]);
      lowest = key < lowest ? key : lowest;
      highest = key > highest ? key : highest;
    }
    return {from_ordered_bits(lowest), from_ordered_bits(highest)};
  }

  /// The folded sum of f(x).
  template <class F>
  KVARTS_HOST_DEVICE float fold(F f) const noexcept {
    alignas(64) float terms[fold_capacity<Length>];
    for (int i = 0; i < n_; ++i) terms[i] = f(x_[i]);
    return detail::fold(terms, n_);
  }

  /// The folded sums of both parts of f(x), a `two_sums`.
  template <class F>
  KVARTS_HOST_DEVICE two_sums fold_both(F f) const noexcept {
    alignas(64) float first[fold_capacity<Length>];
    alignas(64) float second[fold_capacity<Length>];
    for (int i = 0; i < n_; ++i) {
      two_sums const terms = f(x_[i]);
      first[i] = terms.first;
      second[i] = terms.second;
    }
    return {detail::fold(first, n_), detail::fold(second, n_)};
  }

  /// The folded sum of f(x, u) over numbers and their stored codes.
  template <class F>
  KVARTS_HOST_DEVICE float fold_coded(F f) const noexcept {
    alignas(64) float terms[fold_capacity<Length>];
    for (int i = 0; i < n_; ++i) terms[i] = f(x_[i], codes_[i]);
    return detail::fold(terms, n_);
  }

  /// Stores the codes u = f(x). Codes are bytes, which may lie anywhere as far as a compiler knows:
  /// it vectorizes only with the pointers in variables.
  template <class F>
  KVARTS_HOST_DEVICE void store(F f) noexcept {
    float const* const x = x_;
    std::uint8_t* const codes = codes_;
    for (int i = 0; i < n_; ++i) codes[i] = static_cast<std::uint8_t>(f(x[i]));
  }

  /// The same numbers with codes of their own.
  KVARTS_HOST_DEVICE array_group with_codes(more_codes& room) const noexcept {
    return {x_, n_, room.codes};
  }

  KVARTS_HOST_DEVICE void take_codes(array_group const& other) noexcept {
    std::memcpy(codes_, other.codes_, static_cast<std::size_t>(size()));
  }

 private:
  float const* x_;
  Length n_;
  std::uint8_t* codes_;
};

/// Calls `f` with the group x[0..n), its length a compile-time constant where it is a common one;
/// the results are the same for any length.
template <class F>
auto with_array_group(float const* x, int n, std::uint8_t* codes, F&& f) noexcept {
  auto const call = [&](auto length) __attribute__((flatten)) {
    array_group<decltype(length)> group(x, length, codes);
    return f(group);
  };
  switch (n) {
    case 32: return call(std::integral_constant<int, 32>{});
    case 64: return call(std::integral_constant<int, 64>{});
    case 128: return call(std::integral_constant<int, 128>{});
    default: return call(n);
  }
}

}  // namespace detail

/// The array form of a quantizer that is written for groups.
template <class Quantizer>
auto quantize_array(float const* x, int n, std::uint8_t* codes) noexcept {
  return detail::with_array_group(x, n, codes,
                                  [](auto& group) { return Quantizer::quantize(group); });
}

}  // namespace kvarts
