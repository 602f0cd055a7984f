// SPDX-License-Identifier: Apache-2.0
/// @file
/// The tables that `kvarts eval` prints.
#pragma once

#include "eval_result.hpp"

#include <string>

namespace kvarts::tool {

/// What was read, a table of all presets for each layer, and the one of their means.
std::string eval_tables(eval_result const& result);

}  // namespace kvarts::tool
