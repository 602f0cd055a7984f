// SPDX-License-Identifier: Apache-2.0
/// @file
/// .safetensors files: 8 bytes with the header's length, a JSON header, then the tensors' bytes,
/// which cover the rest without holes or overlaps. Source: the format's published description.
#pragma once

#include "file.hpp"
#include "tensor.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace kvarts::tool {

/// Tensors and metadata by name.
struct safetensors {
  std::map<std::string, tensor, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
};

/// Reads a whole file; throws `tool_error` beginning with `name` for anything that is not exactly
/// as the format demands. The tensors point into `file`.
safetensors parse_safetensors(std::span<std::byte const> file, std::string_view name);

/// Maps and parses the file `path`.
inline opened<safetensors> open_safetensors(std::string const& path) {
  return open_with(parse_safetensors, path);
}

/// Writes `contents` as the file `path`, larger element types first so that all are aligned.
void write_safetensors(std::string const& path, safetensors const& contents);

}  // namespace kvarts::tool
