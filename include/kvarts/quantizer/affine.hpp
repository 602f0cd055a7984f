// SPDX-License-Identifier: Apache-2.0
/// @file
/// Affine (min/max) quantizer: an fp16 scale and an fp16 zero-point a group.
#pragma once

#include <kvarts/numerics.hpp>
#include <kvarts/quantizer/parameters.hpp>

namespace kvarts {

/// `z = fp16(min)`, `s = fp16((max - min) / (2^b - 1))`, `u = clamp(rint((x - z) / s), 0, 2^b -
/// 1)`; decodes as `s * u + z`. A scale of zero stores u = 0. Source: KIVI (asymmetric
/// quantization).
template <int Bits>
struct affine {
  static_assert(Bits == 1 || Bits == 2 || Bits == 3 || Bits == 4 || Bits == 8,
                "affine quantizers have 1, 2, 3, 4 or 8 bits");

  using parameters_type = parameters<half>;
  static constexpr int bits = Bits;
  static constexpr bool has_zero = true;
  static constexpr bool clamps_rows = false;
  static constexpr std::uint8_t stored_mask = 0;
  static constexpr int highest = (1 << Bits) - 1;

  static constexpr detail::short_name name() noexcept {
    return detail::short_name{}.append("affine").append(Bits);
  }

  static parameters_type quantize(float const* x, int n, std::uint8_t* codes) noexcept {
    return detail::with_length(n, [&](auto length) {
      parameters_type const p = find_parameters(x, length);
      store_codes(x, length, p, codes);
      return p;
    });
  }

  static constexpr decoding decode_with(parameters_type const& p) noexcept {
    return {p.scale, p.zero};
  }

  static constexpr float level(std::uint8_t u, parameters_type const&, int) noexcept {
    return detail::level_to_float(u);
  }

 private:
  /// Floats as integers of the same order, so that minimum and maximum vectorize.
  static constexpr std::int32_t ordered(float value) noexcept {
    std::int32_t const b = std::bit_cast<std::int32_t>(value);
    return b ^ ((b >> 31) & 0x7FFFFFFF);
  }
  static constexpr float from_ordered(std::int32_t key) noexcept {
    return std::bit_cast<float>(key ^ ((key >> 31) & 0x7FFFFFFF));
  }

  template <class Length>
  static parameters_type find_parameters(float const* x, Length n) noexcept {
    std::int32_t lowest_key = ordered(x[0]);
    std::int32_t highest_key = lowest_key;
    for (int i = 1; i < n; ++i) {
      std::int32_t const key = ordered(x[i]);
      lowest_key = key < lowest_key ? key : lowest_key;
      highest_key = key > highest_key ? key : highest_key;
    }
    float const minimum = from_ordered(lowest_key);
    float const spread = from_ordered(highest_key) - minimum;
    half zero = saturate<half>(minimum);
    if ((zero.bits & 0x7FFFu) == 0) zero.bits = 0;  // -0, also of a tiny minimum, is stored as +0
    return {saturate<half>(spread / static_cast<float>(highest)), zero};
  }

  template <class Length>
  static void store_codes(float const* x, Length n, parameters_type const& p,
                          std::uint8_t* codes) noexcept {
    float const scale = p.scale;
    float const zero = p.zero;
    float const divisor = scale == 0.0f ? 1.0f : scale;
    int const top = scale == 0.0f ? 0 : highest;
    for (int i = 0; i < n; ++i) {
      codes[i] = static_cast<std::uint8_t>(detail::round_to_level((x[i] - zero) / divisor, 0, top));
    }
  }
};

}  // namespace kvarts
