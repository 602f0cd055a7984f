// SPDX-License-Identifier: Apache-2.0
#include "report_parts.hpp"
#include "report_style.hpp"
#include "svg_chart.hpp"
#include "tier/byte_size.hpp"
#include "tier/sim_report.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace kvarts::tool {

namespace {

/// How a tier is drawn, in the order of `contenders()`.
struct curve_style {
  std::string_view css;
  marker_shape shape;
};

constexpr std::array<curve_style, 7> curve_styles{{{"f-plain", marker_shape::ring},
                                                   {"f-int", marker_shape::cross},
                                                   {"f-other", marker_shape::wedge},
                                                   {"f-innerq", marker_shape::square},
                                                   {"f-ours", marker_shape::circle},
                                                   {"f-kivi", marker_shape::triangle},
                                                   {"f-turbo", marker_shape::diamond}}};

constexpr std::string_view curve_rules = R"css(
.curve { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.curve.f-plain { stroke: var(--plain); } .curve.f-int { stroke: var(--int); }
.curve.f-other { stroke: var(--other); } .curve.f-innerq { stroke: var(--innerq); }
.curve.f-ours { stroke: var(--ours); } .curve.f-kivi { stroke: var(--kivi); }
.curve.f-turbo { stroke: var(--turbo); }
)css";

std::string gigabytes(double bytes) { return plain_number(bytes / 1e9); }

curve_style const& style_of(std::size_t line) { return curve_styles[line % curve_styles.size()]; }

void draw_curve(svg_chart& chart, sweep const& s, std::size_t index, axis const& x, axis const& y) {
  sweep_line const& line = s.lines[index];
  curve_style const& style = style_of(index);
  std::vector<point> points;
  for (std::size_t i = 0; i < s.points.size(); ++i) {
    points.push_back({x(static_cast<double>(s.points[i])), y(line.hit_rates[i])});
  }
  chart.polyline(points, fmt::format("curve {}", style.css));
  for (std::size_t i = 0; i < points.size(); ++i) {
    chart.path(marker_path(style.shape, points[i]), fmt::format("marker {}", style.css),
               fmt::format("{}: {} GB, {} % hit", line.tier.name,
                           gigabytes(static_cast<double>(s.points[i])),
                           measured_percent(line.hit_rates[i])));
  }
}

std::string picture(sweep const& s, std::string_view said) {
  constexpr box area{64, 30, 966, 380};
  svg_chart chart("hits", 1044, area.y + area.height + 48, "Hit rate against budget", said);
  chart.text({8, 16}, "part of the prompt tokens found in the cache, %", "axis");
  axis const y = axis::linear({0, 1}, area.y + area.height, area.y);
  constexpr std::array rates{0., .2, .4, .6, .8, 1.};
  chart.y_grid(area, y, rates, [](double rate) { return plain_number(100 * rate); });
  std::vector<double> budgets;
  for (std::int64_t const bytes : s.points) budgets.push_back(static_cast<double>(bytes));
  axis const x =
      axis::logarithmic({budgets.front(), budgets.back()}, area.x + 8, area.x + area.width - 8);
  chart.x_axis(area, x, budgets, gigabytes, "host memory of the tier, GB (log scale)");
  for (std::size_t i = 0; i < s.lines.size(); ++i) draw_curve(chart, s, i, x, y);
  return std::move(chart).finish();
}

std::string legend(sweep const& s) {
  std::string entries;
  for (std::size_t i = 0; i < s.lines.size(); ++i) {
    curve_style const& style = style_of(i);
    entries += legend_entry(fmt::format("<path d=\"M1 7h20\" class=\"curve {0}\"/>"
                                        "<path d=\"{1}\" class=\"marker {0}\"/>",
                                        style.css, marker_path(style.shape, {11, 7})),
                            fmt::format("{}, {} bytes a token", s.lines[i].tier.name,
                                        with_commas(s.lines[i].tier.bytes_per_token)));
  }
  return "<div class=\"legend\">\n" + entries + "</div>\n";
}

std::string chart_section(sweep const& s) {
  sweep_line const& first = s.lines.front();
  sweep_line const& last = s.lines.back();
  std::size_t const middle = s.points.size() / 2 - 1;
  std::string const said = fmt::format(
      "On {}: {} GB find {} % of the prompt tokens as {}, {} % as {}.", s.what,
      gigabytes(static_cast<double>(s.points[middle])), measured_percent(first.hit_rates[middle]),
      first.tier.name, measured_percent(last.hit_rates[middle]), last.tier.name);
  return section("Hit rate against budget", said,
                 legend(s) + "<div class=\"scroll\">" + picture(s, said) + "</div>\n");
}

std::string experiment_section(experiment const& e) {
  std::string rows;
  for (tier_run const& run : e.runs) {
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{} of {}</td><td>{}</td>"
        "<td>{}</td><td>{}</td></tr>\n",
        escape_html(run.tier.name), with_commas(run.host_tokens), with_commas(run.host_bytes()),
        run.result.hits, run.result.requests, measured_percent(run.result.hit_rate()),
        with_commas(run.encoded_bytes()), with_commas(run.restored_bytes()));
  }
  return section(e.name == "trace" ? "Your requests" : "Experiment " + e.name, e.what,
                 "<table class=\"figures\"><thead><tr><th>tier</th><th>tokens</th><th>bytes</th>"
                 "<th>hits</th><th>hit rate, %</th><th>bytes encoded</th><th>bytes restored</th>"
                 "</tr></thead><tbody>\n" +
                     rows + "</tbody></table>\n");
}

}  // namespace

std::string sim_html(sim_result const& result) {
  std::string main = "<header>\n<h1>What a quantized host tier finds again</h1>\n</header>\n";
  main += chart_section(result.budgets);
  for (experiment const& e : result.experiments) main += experiment_section(e);
  return html_page("kvarts tier sim", main, curve_rules);
}

}  // namespace kvarts::tool
