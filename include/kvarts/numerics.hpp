// SPDX-License-Identifier: Apache-2.0
/// @file
/// The float32 operations that decide stored bytes, in a form that no compiler flag changes:
/// rounding to a level, folds, and a barrier against fused multiply-adds. Everything here assumes
/// rounding to nearest; `numerics_ok()` checks it.
#pragma once

#include <kvarts/config.hpp>
#include <kvarts/float16.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace kvarts {

/// Largest head_dim and largest group: bounds the stack buffers of the host path.
inline constexpr int max_head_dim = 1024;

namespace detail {

/// Forces `values` through memory, so that a product stored there is rounded before it enters a
/// sum. Contraction to a fused multiply-add would change stored codes. On the device `multiply`
/// rounds them.
KVARTS_HOST_DEVICE inline void round_products([[maybe_unused]] void* values) noexcept {
#if !defined(__CUDA_ARCH__)
  asm("" : : "r"(values) : "memory");
#endif
}

/// float32 operations that decide stored bytes, each rounded by itself. nvcc would contract the
/// plain operators to fused multiply-adds, and divide as its flags say; on the host products are
/// kept apart from sums by `round_products`.
#if defined(__CUDA_ARCH__)
inline __device__ float add(float a, float b) noexcept { return __fadd_rn(a, b); }
inline __device__ float subtract(float a, float b) noexcept { return __fsub_rn(a, b); }
inline __device__ float multiply(float a, float b) noexcept { return __fmul_rn(a, b); }
inline __device__ float divide(float a, float b) noexcept { return __fdiv_rn(a, b); }
inline __device__ float square_root(float a) noexcept { return __fsqrt_rn(a); }
#else
KVARTS_HOST_DEVICE inline float add(float a, float b) noexcept { return a + b; }
KVARTS_HOST_DEVICE inline float subtract(float a, float b) noexcept { return a - b; }
KVARTS_HOST_DEVICE inline float multiply(float a, float b) noexcept { return a * b; }
KVARTS_HOST_DEVICE inline float divide(float a, float b) noexcept { return a / b; }
KVARTS_HOST_DEVICE inline float square_root(float a) noexcept { return std::sqrt(a); }
#endif

/// Adding 1.5 * 2^23 leaves `rint(x)` in the low bits of the sum.
inline constexpr float round_magic = 12582912.0f;
inline constexpr std::int32_t round_magic_bits = 0x4B400000;

/// `clamp(rint(x), lowest, highest)` as an integer; half-even, for any x that is not NaN and levels
/// within +-2^21. The sum with `round_magic` is monotone in x and so are its bits as a signed
/// integer, so clamping those after the addition is right even for infinities; and unlike a clamp
/// of floats, GCC vectorizes it.
constexpr std::int32_t round_to_level(float x, std::int32_t lowest, std::int32_t highest) noexcept {
  std::int32_t bits = std::bit_cast<std::int32_t>(x + round_magic);
  bits = bits < round_magic_bits + lowest ? round_magic_bits + lowest : bits;
  bits = bits > round_magic_bits + highest ? round_magic_bits + highest : bits;
  return bits - round_magic_bits;
}

/// A level as a float; exact for integers within +-2^21.
constexpr float level_to_float(std::int32_t level) noexcept {
  return std::bit_cast<float>(level + round_magic_bits) - round_magic;
}

/// Length of a fold over n elements: the next power of two.
template <class Length>
constexpr int fold_length(Length n) noexcept {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(int{n})));
}

/// Rule 3 of the codecs: append zeros to a power of two, then `e[i] += e[i + n/2]`, n/4, ... 1. A
/// lane butterfly on a GPU gives the same bits. Overwrites `e`, whose room is `fold_length(n)`.
template <class Real, class Length>
KVARTS_HOST_DEVICE Real fold(Real* e, Length n) noexcept {
  int const padded = fold_length(n);
  for (int i = n; i < padded; ++i) e[i] = Real(0);
  round_products(e);
  for (int half_length = padded / 2; half_length > 0; half_length /= 2) {
    for (int i = 0; i < half_length; ++i) e[i] += e[i + half_length];
  }
  return e[0];
}

}  // namespace detail

/// True when this thread computes as the codecs demand: IEEE divisions, nearest-even rounding, no
/// fused multiply-add in folds. Some compilers define no macro for fast-math, and a thread's
/// rounding mode can change, so programs should call this once. The operands are volatile so that
/// no compiler computes the answers itself.
inline bool numerics_ok() noexcept {
  float const volatile five = 5.0f, three = 3.0f, one = 1.0f, tiny = 0x1p-24f,
                       near_one = 0x1.000002p0f;
  // The product of 5 and the rounded reciprocal of 3 differs from 5 / 3 in the last bit.
  bool ok = std::bit_cast<std::uint32_t>(five / three) == 0x3FD55555u;
  // 1 + 2^-24 and 2.5 are ties and go to even.
  ok = ok && one + tiny == 1.0f;
  ok = ok && detail::round_to_level(five * 0.5f, -8, 7) == 2;
  // (1 + 2^-23)^2 - (1 + 2^-22) is 2^-46 with a fused multiply-add and 0 without.
  float squares[2] = {near_one * near_one, -0x1.000004p0f};
  ok = ok && detail::fold(squares, 2) == 0.0f;
  return ok;
}

}  // namespace kvarts
