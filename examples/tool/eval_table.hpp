// SPDX-License-Identifier: Apache-2.0
/// @file
/// The tables that `kvarts eval` prints.
#pragma once

#include "eval_result.hpp"

#include <string>

namespace kvarts::tool {

/// What was read, a table of all presets for each layer, the one of their means, and which
/// preset to take.
std::string eval_tables(eval_result const& result);

}  // namespace kvarts::tool
