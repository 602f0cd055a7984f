// SPDX-License-Identifier: Apache-2.0
/// @file
/// Mid-rise row quantizer: uniform levels without a zero level, one fp16 scale a row.
#pragma once

#include <kvarts/numerics.hpp>
#include <kvarts/quantizer/group.hpp>
#include <kvarts/quantizer/parameters.hpp>

namespace kvarts {

/// Levels `s * (u - h)`, h = (2^b - 1) / 2. The scale is the best of five around the optimal
/// uniform step of a Gaussian with the row's root mean square; the least folded squared error wins,
/// the first on a tie. A scale of zero stores u = 0. Rows must look Gaussian for this to be good:
/// rotate them first. Source: kvarts' own; steps after Max (1960).
template <int Bits>
struct midrise {
  static_assert(Bits == 2 || Bits == 3 || Bits == 4 || Bits == 8,
                "mid-rise quantizers have 2, 3, 4 or 8 bits");

  using parameters_type = parameters<half>;
  static constexpr int bits = Bits;
  static constexpr bool has_zero = false;
  static constexpr bool clamps_rows = true;
  static constexpr std::uint8_t stored_mask = 0;
  static constexpr int highest = (1 << Bits) - 1;
  static constexpr float center = static_cast<float>(highest) / 2.0f;

  /// Best uniform step for N(0, 1) at this many levels.
  static constexpr float gaussian_step =
      Bits == 2 ? 0.9957f : (Bits == 3 ? 0.5860f : (Bits == 4 ? 0.3352f : 0.0308f));

  static constexpr detail::short_name name() noexcept {
    return detail::short_name{}.append("midrise").append(Bits);
  }

  static parameters_type quantize(float const* x, int n, std::uint8_t* codes) noexcept {
    return quantize_array<midrise>(x, n, codes);
  }

  template <class Group>
  KVARTS_HOST_DEVICE static parameters_type quantize(Group& group) noexcept {
    half const stored = search_scale(group);
    float const scale = stored;
    float const divisor = scale == 0.0f ? 1.0f : scale;
    int const top = scale == 0.0f ? 0 : highest;
    group.store([=](float x) { return code_of(x, divisor, top); });
    return parameters_type{stored, {}};
  }

  static constexpr decoding decode_with(parameters_type const& p) noexcept {
    return {p.scale, 0.0f};
  }

  static constexpr float level(std::uint8_t u, parameters_type const&, int) noexcept {
    return detail::level_to_float(u) - center;
  }

 private:
  /// Factor of a candidate scale, in the order in which they are tried.
  static constexpr float factor(int candidate) noexcept {
    return candidate == 0   ? 1.0f
           : candidate == 1 ? 0.92f
           : candidate == 2 ? 1.08f
           : candidate == 3 ? 0.85f
                            : 1.16f;
  }

  template <class Group>
  KVARTS_HOST_DEVICE static half search_scale(Group const& group) noexcept {
    float const squares = group.fold([](float x) { return detail::multiply(x, x); });
    float const rms =
        detail::square_root(detail::divide(squares, static_cast<float>(group.size())));
    half best{};
    float least = 0.0f;
    for (int i = 0; i < 5; ++i) {
      half const candidate =
          saturate<half>(detail::multiply(rms, detail::multiply(gaussian_step, factor(i))));
      float const error = squared_error(group, candidate);
      if (i == 0 || error < least) {
        least = error;
        best = candidate;
      }
    }
    return best;
  }

  template <class Group>
  KVARTS_HOST_DEVICE static float squared_error(Group const& group, float scale) noexcept {
    float const divisor = scale == 0.0f ? 1.0f : scale;
    return group.fold([=](float x) {
      float const level = detail::level_to_float(code_of(x, divisor, highest)) - center;
      float const d = detail::subtract(x, detail::multiply(scale, level));
      return detail::multiply(d, d);
    });
  }

  KVARTS_HOST_DEVICE static std::int32_t code_of(float x, float divisor, int top) noexcept {
    return detail::round_to_level(detail::add(detail::divide(x, divisor), center), 0, top);
  }
};

}  // namespace kvarts
