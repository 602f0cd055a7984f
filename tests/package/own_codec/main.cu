// SPDX-License-Identifier: Apache-2.0
// An engine with CUDA sources has a quantizer of its own: kernels are compiled for it here.
#include "../gemv_on_device.hpp"

#include <kvarts/kernels/gemv.cuh>

#include <algorithm>
#include <cmath>

/// Codes of 4 bits by the largest magnitude, with level 0 in the middle of two codes.
struct largest4 {
  using parameters_type = kvarts::parameters<kvarts::half>;
  static constexpr int bits = 4;
  static constexpr bool has_zero = false;
  static constexpr bool clamps_rows = false;
  static constexpr std::uint8_t stored_mask = 0;

  static constexpr std::string_view name() { return "largest4"; }

  static parameters_type quantize(float const* x, int n, std::uint8_t* codes) {
    float largest = 0.0f;
    for (int i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
    parameters_type const p{kvarts::saturate<kvarts::half>(largest / 7.5f), {}};
    float const scale = p.scale;
    for (int i = 0; i < n; ++i) {
      float const u = scale > 0.0f ? std::floor(x[i] / scale) + 8.0f : 8.0f;
      codes[i] = static_cast<std::uint8_t>(std::clamp(u, 0.0f, 15.0f));
    }
    return p;
  }
  static kvarts::decoding decode_with(parameters_type const& p) { return {p.scale, 0.0f}; }
  static float level(std::uint8_t u, parameters_type const&, int) {
    return static_cast<float>(u) - 7.5f;
  }
};

int main() { return gemv_on_device<kvarts::codec<largest4, kvarts::axis::channel, 32>>(); }
