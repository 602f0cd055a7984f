// SPDX-License-Identifier: Apache-2.0
/// @file
/// The processor's own binary16 conversions (x86, F16C), for comparison; asked for at run time, so
/// that the tests themselves need no -mf16c.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace kvarts::test {

#if defined(__x86_64__)

inline bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0 &&
         __builtin_cpu_supports("avx");
}

__attribute__((target("f16c"))) inline float f16c_to_float(std::uint16_t bits) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

__attribute__((target("f16c"))) inline std::uint16_t f16c_to_half(float value) {
  __m128i const packed = _mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT);
  return static_cast<std::uint16_t>(_mm_cvtsi128_si32(packed) & 0xFFFF);
}

#else

inline bool has_f16c() { return false; }
inline float f16c_to_float(std::uint16_t) { return 0.0f; }
inline std::uint16_t f16c_to_half(float) { return 0; }

#endif

}  // namespace kvarts::test
