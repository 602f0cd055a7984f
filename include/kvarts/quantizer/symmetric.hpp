// SPDX-License-Identifier: Apache-2.0
/// @file
/// Symmetric quantizers: one fp16 scale a group, levels around zero.
#pragma once

#include <kvarts/numerics.hpp>
#include <kvarts/quantizer/group.hpp>
#include <kvarts/quantizer/parameters.hpp>

#include <limits>

namespace kvarts {

/// Which levels a symmetric quantizer has, and how it finds its scale.
enum class range : std::uint8_t {
  narrow,    ///< `-L..L`, L = 2^(b-1) - 1, scale amax / L: InnerQ as its paper measures accuracy
  wide,      ///< `-2^(b-1)..2^(b-1)-1`, scale amax / 2^(b-1): InnerQ as its kernels compute
  searched,  ///< wide levels; the scale, of either sign, is the best of eight candidates
};

/// "narrow", "wide" or "searched".
constexpr std::string_view to_string(range r) noexcept {
  return r == range::narrow ? "narrow" : (r == range::wide ? "wide" : "searched");
}

/// `u = clamp(rint(x / s), lowest, highest) - lowest` with an fp16 scale; decodes as
/// `s * (u + lowest)`. A scale of zero stores the codes of level 0.
/// Sources: InnerQ (narrow, wide); searched is kvarts' own, about half the squared error of wide.
template <int Bits, range Range>
struct symmetric {
  static_assert(Bits == 2 || Bits == 3 || Bits == 4 || Bits == 8,
                "symmetric quantizers have 2, 3, 4 or 8 bits");

  using parameters_type = parameters<half>;
  static constexpr int bits = Bits;
  static constexpr bool has_zero = false;
  static constexpr bool clamps_rows = false;
  static constexpr std::uint8_t stored_mask = 0;
  static constexpr int highest = (1 << (Bits - 1)) - 1;
  static constexpr int lowest = Range == range::narrow ? -highest : -highest - 1;

  static constexpr detail::short_name name() noexcept {
    return detail::short_name{}
        .append("symmetric")
        .append(Bits)
        .append("_")
        .append(to_string(Range));
  }

  static parameters_type quantize(float const* x, int n, std::uint8_t* codes) noexcept {
    return quantize_array<symmetric>(x, n, codes);
  }

  template <class Group>
  KVARTS_HOST_DEVICE static parameters_type quantize(Group& group) noexcept {
    half const stored = find_scale(group);
    float const scale = stored;
    float const divisor = scale == 0.0f ? 1.0f : scale;
    int const low = scale == 0.0f ? 0 : lowest;
    int const high = scale == 0.0f ? 0 : highest;
    group.store([=](float x) {
      return detail::round_to_level(detail::divide(x, divisor), low, high) - lowest;
    });
    return parameters_type{stored, {}};
  }

  static constexpr decoding decode_with(parameters_type const& p) noexcept {
    return {p.scale, 0.0f};
  }

  static constexpr float level(std::uint8_t u, parameters_type const&, int) noexcept {
    return detail::level_to_float(u + lowest);
  }

 private:
  template <class Group>
  KVARTS_HOST_DEVICE static half find_scale(Group const& group) noexcept {
    if constexpr (Range == range::searched) {
      return search_scale(group);
    } else {
      return saturate<half>(detail::divide(group.largest_magnitude(), static_cast<float>(-lowest)));
    }
  }

  /// Candidates: the extreme element on the level without a twin, times 1, 7/8, 3/4, 5/8, each
  /// followed by its negative; the least folded squared error wins, the first on a tie.
  template <class Group>
  KVARTS_HOST_DEVICE static half search_scale(Group const& group) noexcept {
    float const extreme = group.first_largest();
    half best{};
    float least = std::numeric_limits<float>::infinity();
    for (int eighths = 8; eighths > 4; --eighths) {
      float const factor = static_cast<float>(eighths) * 0.125f;
      half const candidate = saturate<half>(
          detail::divide(detail::multiply(factor, extreme), static_cast<float>(lowest)));
      auto const [same, negated] = squared_errors(group, candidate);
      if (eighths == 8 || same < least) {
        least = same;
        best = candidate;
      }
      if (negated < least) {
        least = negated;
        best = half::from_bits(candidate.bits ^ 0x8000u);
      }
    }
    return best;
  }

  /// Folded squared errors under `scale` and under `-scale`. One division serves both: x / -s is
  /// -(x / s), and a level l under -s is the level -l under s.
  template <class Group>
  KVARTS_HOST_DEVICE static detail::two_sums squared_errors(Group const& group,
                                                            float scale) noexcept {
    float const divisor = scale == 0.0f ? 1.0f : scale;
    return group.fold_both([=](float x) {
      float const quotient = detail::divide(x, divisor);
      return detail::two_sums{squared_error(x, quotient, scale, lowest, highest),
                              squared_error(x, quotient, scale, -highest, -lowest)};
    });
  }

  KVARTS_HOST_DEVICE static float squared_error(float x, float quotient, float scale, int low,
                                                int high) noexcept {
    float const level = detail::level_to_float(detail::round_to_level(quotient, low, high));
    float const d = detail::subtract(x, detail::multiply(scale, level));
    return detail::multiply(d, d);
  }
};

}  // namespace kvarts
