// SPDX-License-Identifier: Apache-2.0
/// @file
/// Loops whose index is a constant of each turn, so that arrays indexed by it stay in registers.
#pragma once

#include <kvarts/kernels/primitives.cuh>

#include <type_traits>
#include <utility>

namespace kvarts::kernels {

/// Calls `f(std::integral_constant<int, i>{})` for i in 0..N-1.
template <int N, class F>
KVARTS_DEVICE void unrolled(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) { (f(std::integral_constant<int, I>{}), ...); }
  (std::make_integer_sequence<int, N>{});
}

}  // namespace kvarts::kernels
