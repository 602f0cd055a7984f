// SPDX-License-Identifier: Apache-2.0
/// @file
/// INT8 per head: HiQCache's published quantizer, bit-exact.
#pragma once

#include <kvarts/numerics.hpp>
#include <kvarts/quantizer/group.hpp>
#include <kvarts/quantizer/parameters.hpp>

namespace kvarts {

/// `s = bf16(max(amax, 2^-112) / 127)`, `q = clamp(rint(x / s), -127, 127)`, one bf16 scale a row
/// (a token of a head). Codes are u = q + 128; memory holds q as two's complement. Decoding to a
/// 16-bit type saturates at its largest finite value, the one intended difference from the
/// published codec. Source: HiQCache.
struct int8_head {
  using parameters_type = parameters<bfloat16>;
  static constexpr int bits = 8;
  static constexpr bool has_zero = false;
  static constexpr bool clamps_rows = false;
  static constexpr std::uint8_t stored_mask = 0x80;

  static constexpr detail::short_name name() noexcept {
    return detail::short_name{}.append("int8_head");
  }

  static parameters_type quantize(float const* x, int n, std::uint8_t* codes) noexcept {
    return quantize_array<int8_head>(x, n, codes);
  }

  template <class Group>
  KVARTS_HOST_DEVICE static parameters_type quantize(Group& group) noexcept {
    float const amax = group.largest_magnitude();
    auto const scale = saturate<bfloat16>(detail::divide(amax > 0x1p-112f ? amax : 0x1p-112f, 127));
    float const divisor = scale;
    group.store([divisor](float x) {
      return detail::round_to_level(detail::divide(x, divisor), -127, 127) + 128;
    });
    return parameters_type{scale, {}};
  }

  static constexpr decoding decode_with(parameters_type const& p) noexcept {
    return {p.scale, 0.0f};
  }

  static constexpr float level(std::uint8_t u, parameters_type const&, int) noexcept {
    return detail::level_to_float(u - 128);
  }
};

}  // namespace kvarts
