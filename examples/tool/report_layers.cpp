// SPDX-License-Identifier: Apache-2.0
#include "report_parts.hpp"
#include "report_style.hpp"
#include "svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

namespace kvarts::tool {

namespace {

/// One heat table: a measure, how its numbers are written and where its colours change.
struct heat_measure {
  std::string_view caption;
  double measures::*error;
  std::string (*format)(double value, bool dense);
  std::array<double, 7> steps;
  std::string (*step_text)(double);
};

constexpr std::array<heat_measure, 2> heat_measures{{
    {"Output error, %",
     &measures::output_rel_err,
     [](double v, bool dense) { return measured_percent(v, dense && v < .01 ? 1 : 2); },
     {.003, .01, .03, .1, .2, .4, .8},
     [](double v) { return plain_number(100 * v); }},
    {"Attention KL, nats",
     &measures::attention_kl,
     [](double v, bool dense) { return v < exact_below ? "0" : measured(v, dense ? 1 : 2); },
     {.001, .01, .03, .1, .3, 1, 5},
     plain_number},
}};

/// More layers than this get narrow cells: fewer digits, smaller type, no column of bits.
constexpr std::size_t dense_from = 13;

std::string cell(heat_measure const& m, double value, bool dense, std::string_view css) {
  if (!std::isfinite(value)) return fmt::format("<td class=\"{}\">n/a</td>", css);
  auto const step = std::upper_bound(m.steps.begin(), m.steps.end(), value) - m.steps.begin();
  std::string text = m.format(value, dense);
  if (dense && text.starts_with("0.")) text.erase(0, 1);
  return fmt::format("<td class=\"h{} {}\">{}</td>", step, css, text);
}

/// The colours with the value from which each holds.
std::string scale_of(heat_measure const& m) {
  std::string html = "<span class=\"scale\">";
  for (std::size_t i = 0; i <= m.steps.size(); ++i) {
    html += fmt::format("<span class=\"h{}\">{}{}{}</span>", i, i == 0 ? "&lt; " : "",
                        m.step_text(m.steps[i == 0 ? 0 : i - 1]), i == m.steps.size() ? "+" : "");
  }
  return html + "</span>";
}

std::string heat_row(eval_result const& result, preset_result const& p, std::set<int> const& layers,
                     heat_measure const& m) {
  std::string html = fmt::format("<tr>{}<td class=\"bits\">{}</td>", row_header(p, result),
                                 table_bits(p.bits.mean));
  for (int const layer : layers) {
    auto const found = std::find_if(p.layers.begin(), p.layers.end(),
                                    [&](layer_result const& l) { return l.layer == layer; });
    html += cell(
        m,
        found == p.layers.end() ? std::numeric_limits<double>::quiet_NaN() : found->values.*m.error,
        layers.size() >= dense_from, "");
  }
  return html + cell(m, p.mean.*m.error, layers.size() >= dense_from, "mean") + "</tr>\n";
}

std::string heat_table(eval_result const& result, std::set<int> const& layers,
                       heat_measure const& m) {
  std::string html = fmt::format(
      "<table class=\"heat\"><caption>{}{}</caption>\n<thead><tr><th scope=\"col\">preset</th>"
      "<th scope=\"col\" class=\"bits\">bits</th>",
      m.caption, scale_of(m));
  for (int const layer : layers) {
    html += fmt::format("<th scope=\"col\">{}{}</th>", layers.size() <= 6 ? "layer " : "", layer);
  }
  html += "<th scope=\"col\" class=\"mean\">mean</th></tr></thead>\n<tbody>\n";
  for (std::size_t const i : table_order(result)) {
    html += heat_row(result, result.presets[i], layers, m);
  }
  return html + "</tbody></table>\n";
}

/// A preset's layers with the largest and the smallest output error above zero.
struct layer_spread {
  preset_result const* preset = nullptr;
  layer_result const* worst = nullptr;
  layer_result const* best = nullptr;

  double ratio() const { return worst->values.output_rel_err / best->values.output_rel_err; }
};

layer_spread spread_of(preset_result const& p) {
  layer_spread s{&p, nullptr, nullptr};
  for (layer_result const& l : p.layers) {
    double const e = l.values.output_rel_err;
    if (!std::isfinite(e) || e < exact_below) continue;
    if (s.worst == nullptr || e > s.worst->values.output_rel_err) s.worst = &l;
    if (s.best == nullptr || e < s.best->values.output_rel_err) s.best = &l;
  }
  return s;
}

std::string sentence(eval_result const& result) {
  layer_spread most;
  layer_spread least;
  for (preset_result const& p : result.presets) {
    layer_spread const s = spread_of(p);
    if (s.worst == s.best) continue;  // fewer than two layers with an error
    if (most.preset == nullptr || s.ratio() > most.ratio()) most = s;
    if (least.preset == nullptr || s.ratio() < least.ratio()) least = s;
  }
  std::string const hint = "The stronger the colour of a cell, the larger the error.";
  if (most.preset == nullptr) return hint;
  auto const clause = [&](layer_spread const& s) {
    return fmt::format("{} ({} % in layer {}, {} % in layer {})", display_name(*s.preset, result),
                       measured_percent(s.worst->values.output_rel_err), s.worst->layer,
                       measured_percent(s.best->values.output_rel_err), s.best->layer);
  };
  std::string text = "Output error most uneven over the layers: " + clause(most);
  if (least.preset != most.preset) text += "; most even: " + clause(least);
  return text + ". " + hint;
}

}  // namespace

std::string layer_section(eval_result const& result) {
  std::set<int> const layers = layers_of(result);
  if (layers.empty()) return "";
  bool const dense = layers.size() >= dense_from;
  int const width = layers.size() <= 3 ? 64 : (dense ? 24 : 46);
  std::string html =
      fmt::format("<div class=\"pair{}\" style=\"--cell: {}px\">\n", dense ? " dense" : "", width);
  for (heat_measure const& m : heat_measures) {
    html += "<div class=\"scroll\">" + heat_table(result, layers, m) + "</div>\n";
  }
  return section("Error by layer", sentence(result), html + "</div>\n");
}

}  // namespace kvarts::tool
