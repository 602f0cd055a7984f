// SPDX-License-Identifier: Apache-2.0
/// @file
/// Element types of an engine's plain tensors.
#pragma once

#include <kvarts/config.hpp>

#include <cstdint>

namespace kvarts {

/// Element type of a plain tensor.
enum class dtype : std::uint8_t { f16, bf16, f32 };

/// Bytes of one element.
constexpr int element_size(dtype type) noexcept { return type == dtype::f32 ? 4 : 2; }

/// "f16", "bf16" or "f32".
constexpr char const* to_string(dtype type) noexcept {
  return type == dtype::f16 ? "f16" : (type == dtype::bf16 ? "bf16" : "f32");
}

}  // namespace kvarts
