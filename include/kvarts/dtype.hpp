// SPDX-License-Identifier: Apache-2.0
/// @file
/// Element types of an engine's plain tensors.
#pragma once

#include <kvarts/float16.hpp>

#include <cstdint>
#include <type_traits>

namespace kvarts {

/// Element type of a plain tensor.
enum class dtype : std::uint8_t { f16, bf16, f32 };

/// Bytes of one element.
constexpr int element_size(dtype type) noexcept { return type == dtype::f32 ? 4 : 2; }

/// "f16", "bf16" or "f32".
constexpr char const* to_string(dtype type) noexcept {
  return type == dtype::f16 ? "f16" : (type == dtype::bf16 ? "bf16" : "f32");
}

namespace detail {

template <class T>
inline constexpr dtype dtype_of = [] {
  using value = std::remove_cv_t<T>;
  static_assert(std::is_same_v<value, half> || std::is_same_v<value, bfloat16> ||
                    std::is_same_v<value, float>,
                "a tensor's elements are half, bfloat16 or float");
  if constexpr (std::is_same_v<value, half>) return dtype::f16;
  if constexpr (std::is_same_v<value, bfloat16>) return dtype::bf16;
  return dtype::f32;
}();

/// Largest finite value of a type.
constexpr float largest_of(dtype type) noexcept {
  return type == dtype::f16    ? half::largest
         : type == dtype::bf16 ? bfloat16::largest
                               : 0x1.FFFFFEp127f;
}

}  // namespace detail
}  // namespace kvarts
