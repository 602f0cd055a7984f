// SPDX-License-Identifier: Apache-2.0
/// @file
/// Symmetric quantizers: one fp16 scale a group, levels around zero.
#pragma once

#include <kvarts/numerics.hpp>
#include <kvarts/quantizer/parameters.hpp>

#include <cmath>
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
    return detail::with_length(n, [&](auto length) {
      half const scale = find_scale(x, length);
      store_codes(x, length, scale, codes);
      return parameters_type{scale, {}};
    });
  }

  static constexpr decoding decode_with(parameters_type const& p) noexcept {
    return {p.scale, 0.0f};
  }

  static constexpr float level(std::uint8_t u, parameters_type const&, int) noexcept {
    return detail::level_to_float(u + lowest);
  }

 private:
  template <class Length>
  static half find_scale(float const* x, Length n) noexcept {
    if constexpr (Range == range::searched) {
      return search_scale(x, n);
    } else {
      return saturate<half>(detail::largest_magnitude(x, n) / static_cast<float>(-lowest));
    }
  }

  template <class Length>
  static void store_codes(float const* x, Length n, float scale, std::uint8_t* codes) noexcept {
    if (scale == 0.0f) {
      for (int i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(-lowest);
      return;
    }
    for (int i = 0; i < n; ++i) {
      codes[i] =
          static_cast<std::uint8_t>(detail::round_to_level(x[i] / scale, lowest, highest) - lowest);
    }
  }

  /// Candidates: the extreme element on the level without a twin, times 1, 7/8, 3/4, 5/8, each
  /// followed by its negative; the least folded squared error wins, the first on a tie.
  template <class Length>
  static half search_scale(float const* x, Length n) noexcept {
    float const amax = detail::largest_magnitude(x, n);
    int extreme = 0;
    while (extreme < n - 1 && std::fabs(x[extreme]) != amax) ++extreme;

    half best{};
    float least = std::numeric_limits<float>::infinity();
    bool first = true;
    for (float const factor : {1.0f, 0.875f, 0.75f, 0.625f}) {
      half const candidate = saturate<half>((factor * x[extreme]) / static_cast<float>(lowest));
      auto const errors = squared_errors(x, n, candidate);
      if (first || errors.same < least) {
        least = errors.same;
        best = candidate;
        first = false;
      }
      if (errors.negated < least) {
        least = errors.negated;
        best = half::from_bits(candidate.bits ^ 0x8000u);
      }
    }
    return best;
  }

  struct error_pair {
    float same;
    float negated;
  };

  /// Folded squared errors under `scale` and under `-scale`. One division serves both: x / -s is
  /// -(x / s), and a level l under -s is the level -l under s.
  template <class Length>
  static error_pair squared_errors(float const* x, Length n, float scale) noexcept {
    alignas(64) float same[detail::fold_capacity<Length>];
    alignas(64) float negated[detail::fold_capacity<Length>];
    float const divisor = scale == 0.0f ? 1.0f : scale;
    for (int i = 0; i < n; ++i) {
      float const quotient = x[i] / divisor;
      float const d =
          x[i] - scale * detail::level_to_float(detail::round_to_level(quotient, lowest, highest));
      float const e = x[i] - scale * detail::level_to_float(
                                         detail::round_to_level(quotient, -highest, -lowest));
      same[i] = d * d;
      negated[i] = e * e;
    }
    return {detail::fold(same, n), detail::fold(negated, n)};
  }
};

}  // namespace kvarts
