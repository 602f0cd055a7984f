// SPDX-License-Identifier: Apache-2.0
/// @file
/// Tensors as files hold them: an element type, a shape and bytes in C order, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// Element types of .npy and .safetensors files.
enum class file_dtype : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  u16,
  i16,
  f16,
  bf16,
  u32,
  i32,
  f32,
  u64,
  i64,
  f64
};

/// Bytes of one element.
std::int64_t element_size(file_dtype type) noexcept;

/// The name that .safetensors files give a type, for instance "BF16"; messages use it too.
std::string_view name_of(file_dtype type) noexcept;

/// The type of a .safetensors name; none when it is unknown.
std::optional<file_dtype> dtype_named(std::string_view name) noexcept;

/// Most dimensions of a tensor that the readers accept.
inline constexpr std::size_t max_rank = 32;

/// Bytes of a tensor; none when a dimension is negative or the product leaves 63 bits. A dimension
/// of zero does not excuse absurd ones beside it.
std::optional<std::int64_t> byte_count(file_dtype type,
                                       std::span<std::int64_t const> shape) noexcept;

/// "[768, 2, 64]", for messages.
std::string to_string(std::span<std::int64_t const> shape);

/// A tensor that does not own its bytes. They may have any alignment.
struct tensor {
  file_dtype dtype = file_dtype::f32;
  std::vector<std::int64_t> shape;
  std::span<std::byte const> bytes;
};

/// Throws `tool_error`, beginning with `name`, unless the tensor has the bytes that its type and
/// shape take.
void check_size(tensor const& values, std::string_view name);

}  // namespace kvarts::tool
