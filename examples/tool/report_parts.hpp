// SPDX-License-Identifier: Apache-2.0
/// @file
/// The sections of the HTML report. Each returns finished HTML and is empty when its data is.
#pragma once

#include "eval_result.hpp"

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// What a preset costs and what it gets wrong.
struct cost_and_error {
  double bits = 0;
  double error = 0;
};

/// For each preset: no other has at most its bits and at most its error. Never for non-finite ones.
std::vector<bool> best_at_bits(std::span<cost_and_error const> presets);

/// Indices of the presets by mean bits, then by output error: the row order of every table.
std::vector<std::size_t> table_order(eval_result const& result);

/// A preset's name, with its windows when the result holds several kinds.
std::string display_name(preset_result const& preset, eval_result const& result);

/// All layers that any preset was measured in.
std::set<int> layers_of(eval_result const& result);

/// The first cell of a preset's table row: marker and name.
std::string row_header(preset_result const& preset, eval_result const& result);

/// A heading, one plain sentence (escaped here) and the body (HTML).
std::string section(std::string_view heading, std::string_view sentence, std::string_view body);

std::string output_error_section(eval_result const& result);  ///< output error against mean bits
std::string attention_section(eval_result const& result);     ///< attention KL against key bits
std::string table_section(eval_result const& result);         ///< bits and measures of all presets
std::string layer_section(eval_result const& result);         ///< heat tables: preset by layer
std::string channel_section(eval_result const& result);       ///< key channels before and after
std::string norm_section(eval_result const& result);          ///< spread of the norms of values

}  // namespace kvarts::tool
