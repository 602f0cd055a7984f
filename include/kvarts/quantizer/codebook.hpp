// SPDX-License-Identifier: Apache-2.0
/// @file
/// Codebook row quantizer: Lloyd-Max levels of a Gaussian, one norm a row.
#pragma once

#include <kvarts/numerics.hpp>
#include <kvarts/quantizer/parameters.hpp>

#include <array>
#include <cmath>
#include <type_traits>

namespace kvarts {

/// TurboQuant's MSE variant: `t = (y / n) * sqrt(D)` with n the row's length before its rotation; u
/// is the number of midpoints between centroids below t; decodes as `r * (c[u] / sqrt(D))` in
/// rotated space. With `Scale` float r is n, as published; with half it is `fp16(n / |c[u] /
/// sqrt(D)|)`, which takes back the shrinkage. Rotate rows first (two rounds, or a dense
/// orthonormal matrix). Sources: TurboQuant; centroids after Lloyd (1957) and Max (1960); the fp16
/// norm is kvarts' own.
template <int Bits, class Scale>
struct codebook {
  static_assert(Bits == 2 || Bits == 3 || Bits == 4, "codebook quantizers have 2, 3 or 4 bits");
  static_assert(std::is_same_v<Scale, float> || std::is_same_v<Scale, half>,
                "a codebook's scale is float (as published) or half (corrected)");

  using parameters_type = parameters<Scale>;
  static constexpr int bits = Bits;
  static constexpr bool has_zero = false;
  static constexpr bool clamps_rows = true;
  static constexpr std::uint8_t stored_mask = 0;
  static constexpr int levels = 1 << Bits;

  static constexpr detail::short_name name() noexcept {
    return detail::short_name{}
        .append("codebook")
        .append(Bits)
        .append(std::is_same_v<Scale, float> ? "_f32" : "_f16");
  }

  /// Centroids of N(0, 1), in rising order.
  static constexpr std::array<float, levels> centroids = [] {
    constexpr std::array<float, 2> two{.45278003f, 1.51041761f};
    constexpr std::array<float, 4> three{.24509418f, .75600528f, 1.34390928f, 2.15194570f};
    constexpr std::array<float, 8> four{.12839503f,  .38804830f,  .65675912f,  .94234046f,
                                        1.25623120f, 1.61804639f, 2.06901723f, 2.73258957f};
    std::array<float, levels> all{};
    for (int i = 0; i < levels / 2; ++i) {
      auto const k = static_cast<std::size_t>(i);
      float const c = Bits == 2 ? two[k % 2] : (Bits == 3 ? three[k % 4] : four[k]);
      all[static_cast<std::size_t>(levels / 2 + i)] = c;
      all[static_cast<std::size_t>(levels / 2 - 1 - i)] = -c;
    }
    return all;
  }();

  /// |x| of a row before its rotation: sqrt of the folded sum of squares.
  static float row_length(float const* x, int n) noexcept {
    float squares[max_head_dim];
    for (int i = 0; i < n; ++i) squares[i] = x[i] * x[i];
    return std::sqrt(detail::fold(squares, n));
  }

  /// Codes of a rotated row whose length before the rotation was `length`.
  static parameters_type quantize(float const* y, int n, std::uint8_t* codes,
                                  float length) noexcept {
    float const root = std::sqrt(static_cast<float>(n));
    for (int i = 0; i < n; ++i) {
      float const t = length == 0.0f ? 0.0f : (y[i] / length) * root;
      codes[i] = nearest(t);
    }
    if constexpr (std::is_same_v<Scale, float>) {
      return {length, {}};
    } else {
      float levels_of_row[max_head_dim];
      for (int i = 0; i < n; ++i) levels_of_row[i] = level(codes[i], {}, n);
      return {saturate<half>(length / row_length(levels_of_row, n)), {}};
    }
  }

  /// A row that no rotation changes.
  static parameters_type quantize(float const* x, int n, std::uint8_t* codes) noexcept {
    return quantize(x, n, codes, row_length(x, n));
  }

  static constexpr decoding decode_with(parameters_type const& p) noexcept {
    return {p.scale, 0.0f};
  }

  static float level(std::uint8_t u, parameters_type const&, int n) noexcept {
    return centroids[u] / std::sqrt(static_cast<float>(n));
  }

 private:
  /// Number of midpoints below t.
  static std::uint8_t nearest(float t) noexcept {
    int u = 0;
    for (std::size_t i = 0; i + 1 < centroids.size(); ++i) {
      u += (centroids[i] + centroids[i + 1]) * 0.5f < t ? 1 : 0;
    }
    return static_cast<std::uint8_t>(u);
  }
};

}  // namespace kvarts
