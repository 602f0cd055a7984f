// SPDX-License-Identifier: Apache-2.0
/// @file
/// Codebook row quantizer: Lloyd-Max levels of a Gaussian, one norm a row.
#pragma once

#include <kvarts/numerics.hpp>
#include <kvarts/quantizer/group.hpp>
#include <kvarts/quantizer/parameters.hpp>

#include <array>
#include <type_traits>
#include <utility>

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

  /// Centroid i of N(0, 1), in rising order.
  static constexpr float centroid(int i) noexcept {
    constexpr float two[] = {.45278003f, 1.51041761f};
    constexpr float three[] = {.24509418f, .75600528f, 1.34390928f, 2.15194570f};
    constexpr float four[] = {.12839503f,  .38804830f,  .65675912f,  .94234046f,
                              1.25623120f, 1.61804639f, 2.06901723f, 2.73258957f};
    int const k = i < levels / 2 ? levels / 2 - 1 - i : i - levels / 2;
    float const c = Bits == 2 ? two[k % 2] : (Bits == 3 ? three[k % 4] : four[k]);
    return i < levels / 2 ? -c : c;
  }

  /// All of them.
  static constexpr std::array<float, levels> centroids = [] {
    std::array<float, levels> all{};
    for (int i = 0; i < levels; ++i) all[static_cast<std::size_t>(i)] = centroid(i);
    return all;
  }();

  /// |x| of a row before its rotation: sqrt of the folded sum of squares.
  static float row_length(float const* x, int n) noexcept {
    return detail::with_array_group(x, n, nullptr, [](auto& row) { return row_length(row); });
  }

  template <class Group>
  KVARTS_HOST_DEVICE static float row_length(Group const& row) noexcept {
    return detail::square_root(row.fold([](float x) { return detail::multiply(x, x); }));
  }

  /// Codes of a rotated row whose length before the rotation was `length`.
  static parameters_type quantize(float const* y, int n, std::uint8_t* codes,
                                  float length) noexcept {
    return detail::with_array_group(y, n, codes,
                                    [length](auto& row) { return quantize(row, length); });
  }

  template <class Group>
  KVARTS_HOST_DEVICE static parameters_type quantize(Group& row, float length) noexcept {
    float const root = detail::square_root(static_cast<float>(row.size()));
    row.store([=](float y) {
      return nearest(length == 0.0f ? 0.0f : detail::multiply(detail::divide(y, length), root));
    });
    if constexpr (std::is_same_v<Scale, float>) {
      return {length, {}};
    } else {
      int const n = row.size();
      float const squares = row.fold_coded([n](float, std::uint8_t u) {
        float const l = level(u, {}, n);
        return detail::multiply(l, l);
      });
      return {saturate<half>(detail::divide(length, detail::square_root(squares))), {}};
    }
  }

  /// A row that no rotation changes.
  static parameters_type quantize(float const* x, int n, std::uint8_t* codes) noexcept {
    return quantize(x, n, codes, row_length(x, n));
  }

  static constexpr decoding decode_with(parameters_type const& p) noexcept {
    return {p.scale, 0.0f};
  }

  KVARTS_HOST_DEVICE static float level(std::uint8_t u, parameters_type const&, int n) noexcept {
    return detail::divide(centroid_of(u), detail::square_root(static_cast<float>(n)));
  }

 private:
  using level_indices = std::make_integer_sequence<int, levels>;
  using midpoint_indices = std::make_integer_sequence<int, levels - 1>;

  template <int I>
  static constexpr float level_constant = centroid(I);
  template <int I>
  static constexpr float midpoint = (centroid(I) + centroid(I + 1)) * 0.5f;

  /// Devices have no table: a chain of selections stays in registers.
  template <int... I>
  KVARTS_HOST_DEVICE static float select(std::uint8_t u,
                                         std::integer_sequence<int, I...>) noexcept {
    float c = 0.0f;
    ((c = u == I ? level_constant<I> : c), ...);
    return c;
  }

  KVARTS_HOST_DEVICE static float centroid_of(std::uint8_t u) noexcept {
#if defined(__CUDA_ARCH__)
    return select(u, level_indices{});
#else
    return centroids[u];
#endif
  }

  /// Number of midpoints below t.
  KVARTS_HOST_DEVICE static std::int32_t nearest(float t) noexcept {
    return count_below(t, midpoint_indices{});
  }
  template <int... I>
  KVARTS_HOST_DEVICE static std::int32_t count_below(float t,
                                                     std::integer_sequence<int, I...>) noexcept {
    return ((midpoint<I> < t ? 1 : 0) + ...);
  }
};

}  // namespace kvarts
