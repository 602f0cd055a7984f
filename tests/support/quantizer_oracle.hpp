// SPDX-License-Identifier: Apache-2.0
/// @file
/// The quantizers a second time, straight from their definitions and as plainly as possible: every
/// float32 operation goes through a volatile, so that no compiler contracts or reorders it, and the
/// 16-bit roundings are done in float64.
#pragma once

#include <kvarts/quantizer.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace kvarts::test {

using numbers = std::vector<float>;

inline float rounded(float x) {
  float volatile once = x;
  return once;
}
inline float sum(float a, float b) { return rounded(rounded(a) + rounded(b)); }
inline float product(float a, float b) { return rounded(rounded(a) * rounded(b)); }
inline float quotient(float a, float b) { return rounded(rounded(a) / rounded(b)); }

/// Nearest number with `digits` binary digits behind the leading one and no exponent below
/// `lowest`, ties to even, clamped to `largest`.
inline float round_to_format(float x, int digits, int lowest, double largest) {
  if (x == 0.0f) return x;
  if (std::isinf(x)) return static_cast<float>(std::copysign(largest, x));
  int const exponent = std::max(std::ilogb(x), lowest);
  double const scaled = std::nearbyint(std::ldexp(double{x}, digits - exponent));
  double const magnitude = std::fabs(std::ldexp(scaled, exponent - digits));
  return static_cast<float>(std::copysign(std::min(magnitude, largest), x));
}
inline float fp16(float x) { return round_to_format(x, 10, -14, 65504.0); }
inline float bf16(float x) { return round_to_format(x, 7, -126, 0x1.FEp127); }

/// Append zeros to a power of two, then add the upper half to the lower until one number is left.
inline float folded(numbers e) {
  std::size_t size = 1;
  while (size < e.size()) size *= 2;
  e.resize(size, 0.0f);
  for (size /= 2; size > 0; size /= 2) {
    for (std::size_t i = 0; i < size; ++i) e[i] = sum(e[i], e[i + size]);
  }
  return e[0];
}

inline float largest_of(numbers const& x) {
  float amax = 0.0f;
  for (float const v : x) amax = std::max(amax, std::fabs(v));
  return amax;
}

inline int round_and_clamp(float x, int lowest, int highest) {
  float const nearest = std::rint(x);
  if (nearest <= static_cast<float>(lowest)) return lowest;
  return nearest >= static_cast<float>(highest) ? highest : static_cast<int>(nearest);
}

/// A coded group: `x^ = scale * levels[i] + zero`, and the codes as stored.
struct oracle_group {
  std::vector<int> codes;
  numbers levels;
  float scale = 0.0f;
  float zero = 0.0f;

  float back(std::size_t i) const { return sum(product(scale, levels[i]), zero); }
};

/// Folded squared error.
inline float squared_error(numbers const& x, oracle_group const& g) {
  numbers squares;
  for (std::size_t i = 0; i < x.size(); ++i) {
    float const d = sum(x[i], -g.back(i));
    squares.push_back(product(d, d));
  }
  return folded(squares);
}

inline float absolute_error(numbers const& x, oracle_group const& g) {
  numbers errors;
  for (std::size_t i = 0; i < x.size(); ++i) errors.push_back(std::fabs(sum(x[i], -g.back(i))));
  return folded(errors);
}

inline oracle_group symmetric_codes(numbers const& x, float scale, int lowest, int highest) {
  oracle_group g{{}, {}, scale, 0.0f};
  for (float const v : x) {
    int const level = scale == 0.0f ? 0 : round_and_clamp(quotient(v, scale), lowest, highest);
    g.codes.push_back(level - lowest);
    g.levels.push_back(static_cast<float>(level));
  }
  return g;
}

/// The eight scales that a searched group chooses from, in order.
inline numbers searched_scales(numbers const& x, int bits) {
  auto const extreme =
      std::find_if(x.begin(), x.end(), [&](float v) { return std::fabs(v) == largest_of(x); });
  numbers scales;
  for (float const factor : {1.0f, 7.0f / 8.0f, 3.0f / 4.0f, 5.0f / 8.0f}) {
    float const scale = fp16(quotient(product(factor, *extreme), -std::ldexp(1.0f, bits - 1)));
    scales.insert(scales.end(), {scale, -scale});
  }
  return scales;
}

/// The first of `candidates` with the least folded squared error.
template <class Codes>
oracle_group best_of(numbers const& x, numbers const& candidates, Codes const& codes) {
  oracle_group best = codes(candidates[0]);
  float least = squared_error(x, best);
  for (float const scale : candidates) {
    oracle_group const g = codes(scale);
    float const error = squared_error(x, g);
    if (error < least) {
      least = error;
      best = g;
    }
  }
  return best;
}

inline oracle_group symmetric_oracle(numbers const& x, int bits, range r) {
  int const highest = (1 << (bits - 1)) - 1;
  int const lowest = r == range::narrow ? -highest : -highest - 1;
  auto const codes = [&](float scale) { return symmetric_codes(x, scale, lowest, highest); };
  if (r == range::searched) return best_of(x, searched_scales(x, bits), codes);
  return codes(fp16(quotient(largest_of(x), static_cast<float>(-lowest))));
}

inline oracle_group affine_oracle(numbers const& x, int bits) {
  auto const [low, high] = std::minmax_element(x.begin(), x.end());
  int const top = (1 << bits) - 1;
  float const zero = fp16(*low);
  float const spread = *low == *high ? 0.0f : sum(*high, -*low);  // never -0, of -0 - +0
  oracle_group g{{}, {}, fp16(quotient(spread, static_cast<float>(top))), zero};
  if (zero == 0.0f) g.zero = 0.0f;
  for (float const v : x) {
    int const u = g.scale == 0.0f ? 0 : round_and_clamp(quotient(sum(v, -zero), g.scale), 0, top);
    g.codes.push_back(u);
    g.levels.push_back(static_cast<float>(u));
  }
  return g;
}

/// The sign bit of `scale` says affine; `back` and `levels` are those of the part chosen, whose
/// scale is |scale|.
struct hybrid_group {
  oracle_group part;
  bool is_affine = false;
};

inline hybrid_group hybrid_oracle(numbers const& x, int bits, range r) {
  auto const s = symmetric_oracle(x, bits, r);
  auto const a = affine_oracle(x, r == range::narrow ? bits - 1 : bits);
  if (absolute_error(x, a) < absolute_error(x, s)) return {a, true};
  return {s, false};
}

inline oracle_group midrise_oracle(numbers const& x, int bits) {
  int const top = (1 << bits) - 1;
  float const middle = static_cast<float>(top) / 2.0f;
  auto const codes = [&](float scale) {
    oracle_group g{{}, {}, scale, 0.0f};
    for (float const v : x) {
      int const u = scale == 0.0f ? 0 : round_and_clamp(sum(quotient(v, scale), middle), 0, top);
      g.codes.push_back(u);
      g.levels.push_back(static_cast<float>(u) - middle);
    }
    return g;
  };
  numbers squares;
  for (float const v : x) squares.push_back(product(v, v));
  float const rms = std::sqrt(quotient(folded(squares), static_cast<float>(x.size())));
  float const step = bits == 2 ? .9957f : (bits == 3 ? .5860f : (bits == 4 ? .3352f : .0308f));
  numbers candidates;
  for (float const f : {1.0f, .92f, 1.08f, .85f, 1.16f}) {
    candidates.push_back(fp16(product(rms, product(step, f))));
  }
  return best_of(x, candidates, codes);
}

inline oracle_group int8_oracle(numbers const& x) {
  float const scale = bf16(quotient(std::max(largest_of(x), 0x1p-112f), 127.0f));
  oracle_group g{{}, {}, scale, 0.0f};
  for (float const v : x) {
    int const q = round_and_clamp(quotient(v, scale), -127, 127);
    g.codes.push_back(q + 128);
    g.levels.push_back(static_cast<float>(q));
  }
  return g;
}

}  // namespace kvarts::test
