// SPDX-License-Identifier: Apache-2.0
/// @file
/// The report that `kvarts eval --html` writes.
#pragma once

#include "eval_result.hpp"

#include <string>

namespace kvarts::tool {

/// One self-contained HTML page: no scripts, no external resources, inline SVG, light and dark.
/// Measures that are not finite are printed as "n/a" and left out of the charts.
std::string html_report(eval_result const& result);

}  // namespace kvarts::tool
