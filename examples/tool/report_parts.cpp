// SPDX-License-Identifier: Apache-2.0
#include "report_parts.hpp"

#include "report_style.hpp"
#include "svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace kvarts::tool {

std::vector<bool> best_at_bits(std::span<cost_and_error const> presets) {
  auto const finite = [](cost_and_error p) {
    return std::isfinite(p.bits) && std::isfinite(p.error);
  };
  std::vector<bool> best;
  for (cost_and_error const p : presets) {
    bool const beaten = std::any_of(presets.begin(), presets.end(), [&](cost_and_error q) {
      return finite(q) && q.bits <= p.bits && q.error <= p.error &&
             (q.bits < p.bits || q.error < p.error);
    });
    best.push_back(finite(p) && !beaten);
  }
  return best;
}

std::vector<std::size_t> table_order(eval_result const& result) {
  std::vector<std::size_t> order(result.presets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto const key = [&](std::size_t i) {
    preset_result const& p = result.presets[i];
    bool const measured = std::isfinite(p.mean.output_rel_err);
    double const bits = std::isfinite(p.bits.mean) ? p.bits.mean : 0;
    return std::tuple(bits, !measured, measured ? p.mean.output_rel_err : 0.0);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

std::string display_name(preset_result const& preset, eval_result const& result) {
  bool const uniform = std::all_of(
      result.presets.begin(), result.presets.end(),
      [&](preset_result const& p) { return p.windows == result.presets.front().windows; });
  return uniform ? preset.preset : fmt::format("{} (windows {})", preset.preset, preset.windows);
}

std::set<int> layers_of(eval_result const& result) {
  std::set<int> layers;
  for (preset_result const& p : result.presets) {
    for (layer_result const& l : p.layers) layers.insert(l.layer);
  }
  return layers;
}

std::string row_header(preset_result const& preset, eval_result const& result) {
  return fmt::format("<th scope=\"row\">{} {}</th>", family_icon(family_of(preset.preset)),
                     escape_html(display_name(preset, result)));
}

std::string section(std::string_view heading, std::string_view sentence, std::string_view body) {
  return fmt::format("<section>\n<h2>{}</h2>\n<p>{}</p>\n{}</section>\n", escape_html(heading),
                     escape_html(sentence), body);
}

}  // namespace kvarts::tool
