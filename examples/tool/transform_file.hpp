// SPDX-License-Identifier: Apache-2.0
/// @file
/// Transform files: centers and norms of the keys of all layers of a model, from calibration text.
///
/// A .safetensors file with `layers.{i}.center` and `layers.{i}.norm`, F32 `[kv_heads, head_dim]`,
/// each optional. Its metadata are strings: `rotation_rounds` and `rotation_seed` (1 where they are
/// missing; rounds 0 mean no rotation), and where known `rope` ("half-split" or "interleaved
/// pairs") and `model`.
#pragma once

#include "safetensors.hpp"

#include <kvarts/transform.hpp>

#include <map>
#include <string>
#include <string_view>

namespace kvarts::tool {

struct transform_file {
  std::map<int, transform> layers;  ///< by layer; each has the file's rotation
  rotation rotate{1, 1};
  std::string rope;   ///< may be empty
  std::string model;  ///< may be empty
};

/// True for a file with any center or norm, so that programs can take either kind.
bool is_transform_file(safetensors const& contents);

/// Reads all layers; throws `tool_error` beginning with `name` that names the layer of a part that
/// is of another type or shape, not finite, or of a norm that is not positive.
transform_file parse_transform_file(safetensors const& contents, std::string_view name);

/// Opens `path` and parses it.
transform_file read_transform_file(std::string const& path);

/// The transform of a layer; throws `tool_error` beginning with `name` when there is none.
transform const& layer_of(transform_file const& file, int layer, std::string_view name);

/// Writes all layers as the file `path`.
void write_transform_file(std::string const& path, transform_file const& file);

}  // namespace kvarts::tool
