// SPDX-License-Identifier: Apache-2.0
#include "report_parts.hpp"
#include "report_style.hpp"
#include "svg_chart.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kvarts::tool {

namespace {

std::string figures_row(preset_result const& p, eval_result const& result, bool best) {
  std::string html = fmt::format("<tr{}>", best ? " class=\"best\"" : "") + row_header(p, result);
  for (double const bits : {p.bits.k, p.bits.v, p.bits.mean}) {
    html += fmt::format("<td>{}</td>", table_bits(bits));
  }
  measures const& m = p.mean;
  html += fmt::format("<td>{}</td>", measured_percent(m.output_rel_err));
  for (double const e : {m.attention_kl, m.logit_rms_err, m.k_rel_sq_err, m.v_rel_sq_err}) {
    html += fmt::format("<td>{}</td>", std::abs(e) < exact_below ? "0" : measured(e));
  }
  return html + "</tr>\n";
}

}  // namespace

std::string table_section(eval_result const& result) {
  if (result.presets.empty()) return "";
  std::vector<cost_and_error> costs;
  for (preset_result const& p : result.presets) {
    costs.push_back({p.bits.mean, p.mean.output_rel_err});
  }
  std::vector<bool> const best = best_at_bits(costs);
  std::string html =
      "<div class=\"scroll\"><table class=\"figures\">\n<thead><tr><th scope=\"col\">preset</th>"
      "<th scope=\"col\">K<br><small>bits</small></th>"
      "<th scope=\"col\">V<br><small>bits</small></th>"
      "<th scope=\"col\">mean<br><small>bits</small></th>"
      "<th scope=\"col\">output error<br><small>%</small></th>"
      "<th scope=\"col\">attention KL<br><small>nats</small></th>"
      "<th scope=\"col\">logit error<br><small>RMS</small></th>"
      "<th scope=\"col\">K error<br><small>relative, squared</small></th>"
      "<th scope=\"col\">V error<br><small>relative, squared</small></th></tr></thead>\n<tbody>\n";
  for (std::size_t const i : table_order(result)) {
    html += figures_row(result.presets[i], result, best[i]);
  }
  return section(
      "All presets",
      fmt::format(
          "Means over {}. Bits include scales and zero-points. Highlighted: no other preset "
          "here has a smaller output error in as few bits.",
          counted(layers_of(result).size(), "layer")),
      html + "</tbody></table></div>\n");
}

}  // namespace kvarts::tool
