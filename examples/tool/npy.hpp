// SPDX-License-Identifier: Apache-2.0
/// @file
/// NumPy's .npy files, format versions 1 to 3: plain little-endian arrays in C order, nothing
/// pickled. Source: the description of the format in NumPy's documentation (NEP 1).
#pragma once

#include "file.hpp"
#include "tensor.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace kvarts::tool {

/// Reads an array; throws `tool_error` beginning with `name` for anything that it is not exactly.
/// The tensor points into `file`. bfloat16, which NumPy lacks, is stored as u16 by convention.
tensor parse_npy(std::span<std::byte const> file, std::string_view name);

/// Maps and parses the file `path`.
inline opened<tensor> open_npy(std::string const& path) { return open_with(parse_npy, path); }

/// Everything of a version 1 file that comes before the array's bytes; their number is
/// `byte_count(type, shape)`. Throws `tool_error` beginning with `name` for types that NumPy lacks.
std::string npy_prologue(file_dtype type, std::span<std::int64_t const> shape,
                         std::string_view name);

/// Writes `values` as the file `path`.
void write_npy(std::string const& path, tensor const& values);

}  // namespace kvarts::tool
