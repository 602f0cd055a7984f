// SPDX-License-Identifier: Apache-2.0
/// @file
/// Figures of `kvarts eval` from an independent implementation, as lines of
/// `dump,windows,preset,layer` and the five measures.
#pragma once

#include "measure_fields.hpp"
#include "tool_error.hpp"

#include <cmath>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::test {

/// The measures of one preset on one layer of a dump.
struct expected_figures {
  std::string dump;     ///< file name without ".safetensors"
  std::string windows;  ///< "off" or "on"
  std::string preset;
  int layer = 0;
  tool::measures values;
};

/// What different orders of summation may change: 1%, or 2e-6 where that is more.
inline bool agree(double measured, double expected) {
  return std::fabs(measured - expected) <= std::fmax(0.01 * std::fabs(expected), 2e-6);
}

/// Reads a file of such lines under a heading; throws `tool_error` naming a line that is not one.
inline std::vector<expected_figures> read_expected(std::string const& path) {
  std::ifstream file(path);
  if (!file) throw tool::tool_error(path + ": cannot open");
  std::vector<expected_figures> rows;
  std::string line;
  std::getline(file, line);
  for (int number = 2; std::getline(file, line); ++number) {
    std::istringstream cells(line);
    expected_figures row;
    for (std::string* const text : {&row.dump, &row.windows, &row.preset}) {
      std::getline(cells, *text, ',');
    }
    cells >> row.layer;
    for (auto const& [name, value] : tool::measure_fields) cells.ignore(1) >> row.values.*value;
    if (!cells) throw tool::tool_error(path + ": cannot read line " + std::to_string(number));
    rows.push_back(row);
  }
  return rows;
}

/// The measures of a preset on a layer, with windows "off" or "on"; null when it was not evaluated.
inline tool::measures const* find_measures(tool::eval_result const& result,
                                           std::string const& preset, int layer,
                                           std::string_view windows = "off") {
  for (tool::preset_result const& p : result.presets) {
    for (tool::layer_result const& l : p.layers) {
      if (p.preset == preset && p.windows == windows && l.layer == layer) return &l.values;
    }
  }
  return nullptr;
}

}  // namespace kvarts::test
