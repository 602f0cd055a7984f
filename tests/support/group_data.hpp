// SPDX-License-Identifier: Apache-2.0
/// @file
/// Groups that quantizers find awkward.
#pragma once

#include "support/random.hpp"

#include <kvarts/float16.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace kvarts::test {

/// What the numbers of a group look like.
enum class group_data {
  normal,
  heavy_tailed,
  shifted,  // far from zero against their spread
  outlier,
  cut,     // within +-2, often both: searched scales tie but for the rounding of their errors
  coarse,  // small multiples of a half: many ties
  zeros,   // of both signs, and little else
  constant,
  one_ulp,     // two neighbours of fp16
  tiny,        // scales become subnormal or zero
  tiny_float,  // subnormal floats
  large,       // up to fp16's largest
  huge,        // up to the largest float: scales saturate, squares overflow
};

inline constexpr group_data row_data[] = {
    group_data::normal,  group_data::heavy_tailed, group_data::shifted,    group_data::outlier,
    group_data::cut,     group_data::coarse,       group_data::zeros,      group_data::constant,
    group_data::one_ulp, group_data::tiny,         group_data::tiny_float, group_data::large};

/// One number; `center` is the group's own.
inline double draw_number(random_source& random, group_data kind, double center) {
  double const z = random.normal();
  switch (kind) {
    case group_data::normal: return z;
    case group_data::heavy_tailed: return z * z * z;
    case group_data::shifted: return 40.0 * center + 0.25 * z;
    case group_data::outlier: return random.between(0, 15) == 0 ? 100.0 * z : z;
    case group_data::cut: return z > 2.0 ? 2.0 : (z < -2.0 ? -2.0 : z);
    case group_data::coarse: return random.between(-9, 9) * 0.5;
    case group_data::zeros: return random.between(0, 7) == 0 ? z : (z < 0 ? -0.0 : 0.0);
    case group_data::constant: return 100.0 * center;
    case group_data::one_ulp: return 600.0 + 0.5 * random.between(0, 1);
    case group_data::tiny: return std::ldexp(z, -20 + static_cast<int>(4.0 * center));
    case group_data::tiny_float: return std::ldexp(z, -140);
    case group_data::large: return 65504.0 * (2.0 * random.uniform() - 1.0);
    default: return std::ldexp(2.0 * random.uniform() - 1.0, 118 + random.between(0, 10));
  }
}

/// A group of n numbers, as an fp16, bf16 or float32 tensor would hold them.
inline std::vector<float> draw_group(random_source& random, group_data kind, int n) {
  double const center = random.normal();
  int const type = random.between(0, 2);
  std::vector<float> x;
  for (int i = 0; i < n; ++i) {
    auto const value = saturate<float>(static_cast<float>(draw_number(random, kind, center)));
    x.push_back(type == 0 && kind != group_data::huge ? float{saturate<half>(value)}
                : type == 1                           ? float{saturate<bfloat16>(value)}
                                                      : value);
  }
  return x;
}

}  // namespace kvarts::test
