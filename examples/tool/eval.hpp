// SPDX-License-Identifier: Apache-2.0
/// @file
/// `kvarts eval`: what presets cost the attention of a real model, measured on a dump.
#pragma once

#include "dump.hpp"
#include "eval_calibration.hpp"
#include "eval_coding.hpp"
#include "eval_result.hpp"

#include <string>
#include <vector>

namespace kvarts::tool {

struct eval_options {
  std::vector<std::string> presets;  ///< none: all, own ones too
  int threads = 1;                   ///< the result does not depend on them
  windows_choice windows = windows_choice::off;
  budget limits{};
  std::vector<runtime_preset> own{};  ///< presets beside the shipped ones
};

/// Codes keys and values of every layer with every preset and compares attention in float64.
/// `calibration` has a transform for each layer; the dump must have queries and values. With
/// windows on, a query at a position reads the cache as it is after that token: sinks, recent
/// tokens and those that fill no whole group yet are exact. Windows off are empty ones.
eval_result evaluate(dump const& of, key_calibration const& calibration,
                     eval_options const& options);

}  // namespace kvarts::tool
