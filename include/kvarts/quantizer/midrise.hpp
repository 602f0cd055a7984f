// SPDX-License-Identifier: Apache-2.0
/// @file
/// Mid-rise row quantizer: uniform levels without a zero level, one fp16 scale a row.
#pragma once

#include <kvarts/numerics.hpp>
#include <kvarts/quantizer/parameters.hpp>

#include <cmath>

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
    return detail::with_length(n, [&](auto length) {
      half const scale = search_scale(x, length);
      store_codes(x, length, scale, codes);
      return parameters_type{scale, {}};
    });
  }

  static constexpr decoding decode_with(parameters_type const& p) noexcept {
    return {p.scale, 0.0f};
  }

  static constexpr float level(std::uint8_t u, parameters_type const&, int) noexcept {
    return detail::level_to_float(u) - center;
  }

 private:
  template <class Length>
  static half search_scale(float const* x, Length n) noexcept {
    float const rms = root_mean_square(x, n);
    half best{};
    float least = 0.0f;
    bool first = true;
    for (float const factor : {1.0f, 0.92f, 1.08f, 0.85f, 1.16f}) {
      half const candidate = saturate<half>(rms * (gaussian_step * factor));
      float const error = squared_error(x, n, candidate);
      if (first || error < least) {
        least = error;
        best = candidate;
        first = false;
      }
    }
    return best;
  }

  template <class Length>
  static float root_mean_square(float const* x, Length n) noexcept {
    alignas(64) float squares[detail::fold_capacity<Length>];
    for (int i = 0; i < n; ++i) squares[i] = x[i] * x[i];
    return std::sqrt(detail::fold(squares, n) / static_cast<float>(int{n}));
  }

  template <class Length>
  static float squared_error(float const* x, Length n, float scale) noexcept {
    alignas(64) float squares[detail::fold_capacity<Length>];
    float const divisor = scale == 0.0f ? 1.0f : scale;
    for (int i = 0; i < n; ++i) {
      auto const u = detail::round_to_level(x[i] / divisor + center, 0, highest);
      float const d = x[i] - scale * (detail::level_to_float(u) - center);
      squares[i] = d * d;
    }
    return detail::fold(squares, n);
  }

  template <class Length>
  static void store_codes(float const* x, Length n, float scale, std::uint8_t* codes) noexcept {
    float const divisor = scale == 0.0f ? 1.0f : scale;
    int const top = scale == 0.0f ? 0 : highest;
    for (int i = 0; i < n; ++i) {
      codes[i] = static_cast<std::uint8_t>(detail::round_to_level(x[i] / divisor + center, 0, top));
    }
  }
};

}  // namespace kvarts
