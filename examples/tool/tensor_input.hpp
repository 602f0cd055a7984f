// SPDX-License-Identifier: Apache-2.0
/// @file
/// Tensors of files as the library sees them: rows of head_dim elements of fp16, bf16 or fp32.
#pragma once

#include "file.hpp"
#include "tensor.hpp"

#include <kvarts/dtype.hpp>
#include <kvarts/view.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// `FILE::PART` of a command line.
struct file_part {
  std::string file;
  std::string part;
};

/// Splits at the last "::"; none when there is no "::" with text on both sides.
std::optional<file_part> split_file_part(std::string_view text);

/// The type that "f16", "bf16" or "f32" names; "" names none.
std::optional<dtype> element_type_named(std::string_view name);

/// The type that files store elements of `type` as: .npy files have bf16 as u16.
file_dtype npy_type(dtype type) noexcept;

/// Rows of a tensor `[tokens, heads, head_dim]`, or `[tokens, head_dim]` of one head. Throws
/// `tool_error` beginning with `name` for other shapes, and for elements that are not f16, bf16,
/// f32 or not of `type`; u16 is bf16 only where `type` says so. Points into the tensor's bytes.
source_view rows_of(tensor const& values, std::string_view name, std::optional<dtype> type = {});

/// A tensor of a file, mapped.
struct tensor_input {
  mapped_file file;
  std::string name;        ///< for messages
  source_view rows;        ///< points into `file`
  bool heads_axis = true;  ///< false for `[tokens, head_dim]`
};

/// Opens `PATH.npy` or `PATH.safetensors::NAME`; throws `tool_error` as `rows_of` does, with exit
/// code 2 for a .safetensors file without the name of a tensor.
tensor_input open_tensor_input(std::string const& path, std::optional<dtype> type);

/// The elements of a small array (f16, f32 or f64) as float32; throws `tool_error` beginning with
/// `name` for other types, and where one is not finite.
std::vector<float> finite_floats(tensor const& values, std::string_view name);

}  // namespace kvarts::tool
