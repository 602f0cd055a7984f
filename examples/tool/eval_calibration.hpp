// SPDX-License-Identifier: Apache-2.0
/// @file
/// Where `kvarts eval` takes the key transforms of the calibrated presets from.
#pragma once

#include "dump.hpp"

#include <kvarts/transform.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// Center, norm and rotation for the keys of every layer of a dump, in its order.
struct key_calibration {
  std::string source;  ///< file; empty for estimates from the dump itself
  std::vector<transform> layers;
  std::vector<std::string> warnings;
};

/// Transforms from a transform file, or from the keys (token 32 on) and queries of another text's
/// dump. Throws `tool_error` beginning with `name` where that is of another model, geometry or
/// layers.
key_calibration calibrate_from(safetensors const& file, std::string_view name, dump const& of);

/// Estimates from the dump itself: its keys from token 32 to the first query, and its queries.
key_calibration calibrate_from_prefill(dump const& of);

}  // namespace kvarts::tool
