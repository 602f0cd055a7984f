// SPDX-License-Identifier: Apache-2.0
/// @file
/// The JSON that `kvarts eval --json` writes.
#pragma once

#include "eval_result.hpp"

#include <string>

namespace kvarts::tool {

/// `{"dump", "model", ..., "results": [{"preset", "windows", "bits", "layers", "mean"}],
/// "choice": {"preset", "ranking", "overrides", "unsafe", "text", ...}}`; measures
/// that are not finite are null.
std::string eval_json(eval_result const& result);

}  // namespace kvarts::tool
