// SPDX-License-Identifier: Apache-2.0
/// @file
/// The numbers that share parameters, held by a warp: what `array_group` is to the host.
#pragma once

#include <kvarts/kernels/memory.cuh>
#include <kvarts/quantizer/group.hpp>

#include <bit>
#include <cstdint>

namespace kvarts::kernels {

/// Element i of n <= 32 * Slots is in slot i / 32 of lane i % 32. All lanes get the same sums,
/// which are folds as on the host: within lanes first, then butterflies. `Slots` is a power of two;
/// those that no number needs are passed over.
template <int Slots>
class warp_group {
  static_assert(std::has_single_bit(static_cast<unsigned>(Slots)));

 public:
  /// Codes are in registers too: a copy of the group has its own.
  struct more_codes {};

  /// Element i is `number(i, slot)`, called for i < n.
  template <class F>
  KVARTS_DEVICE warp_group(int n, F number) : n_(n), lane_(lane_index()) {
    KVARTS_UNROLL
    for (int s = 0; s < Slots; ++s) x_[s] = has(s) ? number(index(s), s) : 0.0f;
  }

  KVARTS_DEVICE int size() const { return n_; }

  KVARTS_DEVICE float largest_magnitude() const {
    std::int32_t largest = 0;
    KVARTS_UNROLL
    for (int s = 0; s < Slots; ++s) {
      std::int32_t const magnitude = detail::magnitude_bits(x_[s]);
      largest = magnitude > largest ? magnitude : largest;
    }
    return std::bit_cast<float>(-warp_minimum(-largest));
  }

  /// The first number of largest magnitude; its sign travels with its index.
  KVARTS_DEVICE float first_largest() const {
    float const largest = largest_magnitude();
    std::int32_t const largest_bits = detail::magnitude_bits(largest);
    std::int32_t first = 2 * warp_lanes * Slots;
    KVARTS_UNROLL
    for (int s = Slots - 1; s >= 0; --s) {
      std::uint32_t const sign = std::bit_cast<std::uint32_t>(x_[s]) >> 31;
      bool const is_largest = has(s) && detail::magnitude_bits(x_[s]) == largest_bits;
      first = is_largest ? index(s) * 2 + static_cast<std::int32_t>(sign) : first;
    }
    return warp_minimum(first) % 2 != 0 ? -largest : largest;
  }

  KVARTS_DEVICE detail::extremes find_extremes() const {
    std::int32_t lowest = detail::ordered_bits(x_[0]);
    lowest = has(0) ? lowest : INT32_MAX;
    std::int32_t highest = has(0) ? detail::ordered_bits(x_[0]) : -INT32_MAX;
    KVARTS_UNROLL
    for (int s = 1; s < Slots; ++s) {
      std::int32_t const key = detail::ordered_bits(x_[s]);
      lowest = has(s) && key < lowest ? key : lowest;
      highest = has(s) && key > highest ? key : highest;
    }
    return {detail::from_ordered_bits(warp_minimum(lowest)),
            detail::from_ordered_bits(-warp_minimum(-highest))};
  }

  /// The folded sum of f(x).
  template <class F>
  KVARTS_DEVICE float fold(F f) const {
    float terms[Slots];
    KVARTS_UNROLL
    for (int s = 0; s < Slots; ++s) terms[s] = has(s) ? f(x_[s]) : 0.0f;
    return fold_terms(terms);
  }

  /// The folded sums of both parts of f(x), a `two_sums`.
  template <class F>
  KVARTS_DEVICE detail::two_sums fold_both(F f) const {
    float first[Slots];
    float second[Slots];
    KVARTS_UNROLL
    for (int s = 0; s < Slots; ++s) {
      detail::two_sums const terms = has(s) ? f(x_[s]) : detail::two_sums{0.0f, 0.0f};
      first[s] = terms.first;
      second[s] = terms.second;
    }
    return {fold_terms(first), fold_terms(second)};
  }

  /// The folded sum of f(x, u) over numbers and their stored codes.
  template <class F>
  KVARTS_DEVICE float fold_coded(F f) const {
    float terms[Slots];
    KVARTS_UNROLL
    for (int s = 0; s < Slots; ++s) terms[s] = has(s) ? f(x_[s], codes_[s]) : 0.0f;
    return fold_terms(terms);
  }

  /// Stores the codes u = f(x).
  template <class F>
  KVARTS_DEVICE void store(F f) {
    KVARTS_UNROLL
    for (int s = 0; s < Slots; ++s) {
      codes_[s] = has(s) ? static_cast<std::uint8_t>(f(x_[s])) : std::uint8_t{0};
    }
  }

  KVARTS_DEVICE warp_group with_codes(more_codes&) const { return *this; }
  KVARTS_DEVICE void take_codes(warp_group const& other) {
    KVARTS_UNROLL
    for (int s = 0; s < Slots; ++s) codes_[s] = other.codes_[s];
  }

  /// Calls `f(i, u)` for this lane's elements and their stored codes.
  template <class F>
  KVARTS_DEVICE void for_each_code(F f) const {
    KVARTS_UNROLL
    for (int s = 0; s < Slots; ++s) {
      if (has(s)) f(index(s), codes_[s]);
    }
  }

 private:
  KVARTS_DEVICE int index(int slot) const { return slot * warp_lanes + lane_; }
  KVARTS_DEVICE bool has(int slot) const { return index(slot) < n_; }

  /// `terms` holds zeros where there is no number.
  KVARTS_DEVICE float fold_terms(float (&terms)[Slots]) const {
    int const padded = detail::fold_length(n_);
    KVARTS_UNROLL
    for (int half = Slots / 2; half > 0; half /= 2) {
      if (padded < 2 * half * warp_lanes) continue;
      KVARTS_UNROLL
      for (int s = 0; s < half; ++s) terms[s] = detail::add(terms[s], terms[s + half]);
    }
    float sum = terms[0];
    KVARTS_UNROLL
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
      if (padded > distance) sum = detail::add(sum, shuffle_xor(sum, distance));
    }
    return padded < warp_lanes ? shuffle(sum, 0) : sum;
  }

  float x_[Slots];
  std::uint8_t codes_[Slots];
  int n_;
  int lane_;
};

}  // namespace kvarts::kernels
