// SPDX-License-Identifier: Apache-2.0
/// @file
/// .kvt files on disk; include/kvarts/kvt.hpp describes their bytes.
#pragma once

#include "file.hpp"

#include <kvarts/kvt_header.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// A .kvt file in parts. `payload` does not own its bytes.
struct kvt_contents {
  kvt_header header;
  std::vector<float> center;  ///< `[heads, head_dim]`, or empty
  std::vector<float> norm;    ///< `[heads, head_dim]`, or empty
  std::span<std::byte const> payload;
};

/// Reads a whole file; throws `tool_error` beginning with `name` unless every byte is as it was
/// written. The payload points into `file`; compare its size with the codec's layout before use.
kvt_contents parse_kvt_file(std::span<std::byte const> file, std::string_view name);

/// Maps and parses the file `path`.
inline opened<kvt_contents> open_kvt(std::string const& path) {
  return open_with(parse_kvt_file, path);
}

/// Writes `contents` as the file `path`. The header's bits for center and norm, its payload bytes
/// and its CRCs are set here; the other fields are the caller's. Throws `tool_error` when a reader
/// would refuse the header, or when center or norm are of another size.
void write_kvt(std::string const& path, kvt_contents const& contents);

}  // namespace kvarts::tool
