// SPDX-License-Identifier: Apache-2.0
/// @file
/// The JSON header of a .safetensors file.
#pragma once

#include "tensor.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// Bytes `[begin, end)` after the header.
struct byte_range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// What a header says about one tensor.
struct tensor_entry {
  std::string name;
  file_dtype dtype = file_dtype::f32;
  std::vector<std::int64_t> shape;
  byte_range range;
};

struct safetensors_header {
  std::vector<tensor_entry> tensors;  ///< in the order of the header
  std::map<std::string, std::string, std::less<>> metadata;
};

/// Parses the JSON of a header while it streams by: no document is built, and whatever the format
/// does not allow (other values, deeper nesting, a key twice) ends it at once. Throws `tool_error`
/// beginning with `name`. The ranges are as stored, not yet compared with anything.
safetensors_header parse_safetensors_header(std::string_view json, std::string_view name);

}  // namespace kvarts::tool
