// SPDX-License-Identifier: Apache-2.0
/// @file
/// Presets of a user, as JSON.
#pragma once

#include "eval_coding.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// Presets from a JSON object or a list of them:
///
///     {"name": "mine",
///      "keys": {"codec": "symmetric4_wide", "along": "channel", "group": 64,
///               "transform": "calibrated"},
///      "values": {"codec": "midrise3", "transform": "rotated"},
///      "windows": {"sink": 32, "recent": 96}}
///
/// Codecs are those of `kvarts codecs`; "along" ("channel" or "token") and "group" (32 unless
/// given) are for those with groups. Transforms of keys are none (unless given), innerq,
/// calibrated, turned and calibrated_turned, of values none, rotated and turned. Without "windows"
/// there are none. Throws `tool_error` beginning with `name` for text that is no such JSON, for
/// fields and names that do not exist, a preset that is shipped or comes twice, and windows that
/// the groups of a codec do not divide.
std::vector<runtime_preset> parse_presets(std::string_view text, std::string_view name);

/// The same from a file.
std::vector<runtime_preset> read_presets(std::string const& path);

}  // namespace kvarts::tool
