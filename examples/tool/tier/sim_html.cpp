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
      "On {}: of the prompt tokens {} GB find {} % again as {}, {} % as {}.", s.what,
      gigabytes(static_cast<double>(s.points[middle])), measured_percent(first.hit_rates[middle]),
      first.tier.name, measured_percent(last.hit_rates[middle]), last.tier.name);
  return section("Hit rate against budget", said,
                 legend(s) + "<div class=\"scroll\">" + picture(s, said) + "</div>\n");
}

/// A table whose first column names rows; cells are plain text.
std::string html_table(std::vector<std::string> const& headings,
                       std::vector<std::vector<std::string>> const& rows) {
  std::string html = "<table class=\"figures\"><thead><tr>";
  for (std::string const& heading : headings) html += "<th>" + escape_html(heading) + "</th>";
  html += "</tr></thead><tbody>\n";
  for (auto const& row : rows) {
    html += "<tr><th scope=\"row\">" + escape_html(row.front()) + "</th>";
    for (std::size_t i = 1; i < row.size(); ++i) html += "<td>" + escape_html(row[i]) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string experiment_section(experiment const& e) {
  std::vector<std::vector<std::string>> rows;
  for (tier_run const& run : e.runs) {
    rows.push_back({run.tier.name, with_commas(run.host_tokens), with_commas(run.host_bytes()),
                    fmt::format("{} of {}", run.result.hits, run.result.requests),
                    measured_percent(run.result.hit_rate()), with_commas(run.encoded_bytes()),
                    with_commas(run.restored_bytes())});
  }
  return section(
      heading_of(e), e.what,
      html_table({"tier", "tokens", "bytes", "hits", "hit rate, %", "encoded", "restored"}, rows));
}

std::string group_section(sweep const& s) {
  std::vector<std::string> headings = {"tier"};
  for (std::int64_t const groups : s.points) headings.push_back(fmt::format("{} groups", groups));
  std::vector<std::vector<std::string>> rows;
  for (sweep_line const& line : s.lines) {
    rows.push_back({line.tier.name});
    for (double const rate : line.hit_rates) rows.back().push_back(measured_percent(rate));
  }
  return section("Hit rate by groups, %", s.what, html_table(headings, rows));
}

}  // namespace

std::string sim_html(sim_result const& result) {
  std::string main = "<header>\n<h1>What a quantized host tier finds again</h1>\n</header>\n";
  main += chart_section(result.budgets);
  for (experiment const& e : result.experiments) main += experiment_section(e);
  if (result.groups) main += group_section(*result.groups);
  return html_page("kvarts tier sim", main, curve_rules);
}

}  // namespace kvarts::tool
