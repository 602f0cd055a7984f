// SPDX-License-Identifier: Apache-2.0
/// @file
/// Affine (min/max) quantizer: an fp16 scale and an fp16 zero-point a group.
#pragma once

#include <kvarts/numerics.hpp>
#include <kvarts/quantizer/group.hpp>
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
    return quantize_array<affine>(x, n, codes);
  }

  template <class Group>
  KVARTS_HOST_DEVICE static parameters_type quantize(Group& group) noexcept {
    parameters_type const p = find_parameters(group);
    float const scale = p.scale;
    float const zero = p.zero;
    float const divisor = scale == 0.0f ? 1.0f : scale;
    int const top = scale == 0.0f ? 0 : highest;
    group.store([=](float x) {
      return detail::round_to_level(detail::divide(detail::subtract(x, zero), divisor), 0, top);
    });
    return p;
  }

  static constexpr decoding decode_with(parameters_type const& p) noexcept {
    return {p.scale, p.zero};
  }

  static constexpr float level(std::uint8_t u, parameters_type const&, int) noexcept {
    return detail::level_to_float(u);
  }

 private:
  template <class Group>
  KVARTS_HOST_DEVICE static parameters_type find_parameters(Group const& group) noexcept {
    auto const [minimum, maximum] = group.find_extremes();
    float const spread = detail::subtract(maximum, minimum);
    half zero = saturate<half>(minimum);
    if ((zero.bits & 0x7FFFu) == 0) zero.bits = 0;  // -0, also of a tiny minimum, is stored as +0
    return {saturate<half>(detail::divide(spread, static_cast<float>(highest))), zero};
  }
};

}  // namespace kvarts
