// SPDX-License-Identifier: Apache-2.0
/// @file
/// Presets as marks of a chart of error against bits, and what can be said about them.
#pragma once

#include "eval_result.hpp"
#include "report_parts.hpp"
#include "report_style.hpp"
#include "svg_chart.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// Which error is drawn against which bits, and how both are called.
struct tradeoff {
  std::string_view id;  ///< of the SVG element, unique in the page
  std::string_view heading;
  double effective_bits::*bits;
  std::string_view bits_title;
  double measures::*error;
  std::string_view error_noun;
  std::string_view error_title;
  std::string (*format)(double);  ///< an error with its unit, in running text
  std::string (*tick)(double);    ///< an error on the axis
};

/// A preset as it is drawn.
struct mark {
  std::string name;
  family const* origin = nullptr;
  cost_and_error cost;
  point at;  ///< set by the chart
};

/// `error` as text, with its unit.
std::string value_text(tradeoff const& t, double error);

/// The presets that have finite bits and a finite error, by bits, then by error.
std::vector<mark> drawable_marks(eval_result const& result, tradeoff const& t);

/// The stairs of the least error that so many bits buy, through the marks that `best_at_bits`
/// names.
std::vector<point> frontier(std::vector<mark> const& marks);

/// Who has the least error within 3, 4 and 9 bits, and the best of another family there.
std::string tradeoff_sentence(std::vector<mark> const& marks, tradeoff const& t);

/// Names of the presets that `drawable_marks` left out, as a sentence; empty if there are none.
std::string omitted_sentence(eval_result const& result, std::vector<mark> const& marks);

}  // namespace kvarts::tool
