// SPDX-License-Identifier: Apache-2.0
#include "report_parts.hpp"
#include "report_style.hpp"
#include "svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace kvarts::tool {

namespace {

constexpr std::size_t group = 32;  // tokens that share a scale in codecs grouped along tokens

/// The norms of one KV head, sorted, with what is printed beside them.
struct norm_row {
  value_norms const* source = nullptr;
  std::vector<double> sorted;
  double spread = 0;           ///< largest / smallest
  double spread_in_group = 0;  ///< the same inside `group` consecutive tokens, median over groups
  double first_rank = 0;       ///< part of the tokens with smaller values than token 0

  double at(double part) const {
    return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1) + .5)];
  }
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Largest / smallest of the values that are not zero.
double factor(std::span<double const> values) {
  double low = 0;
  double high = 0;
  for (double const v : values) {
    if (v < exact_below) continue;
    low = low == 0 ? v : std::min(low, v);
    high = std::max(high, v);
  }
  return low == 0 ? 1 : high / low;
}

norm_row row_of(value_norms const& v) {
  norm_row row{&v, v.norms, factor(v.norms), 0, 0};
  std::sort(row.sorted.begin(), row.sorted.end());
  std::vector<double> factors;
  for (std::size_t first = 0; first + group <= v.norms.size(); first += group) {
    factors.push_back(factor(std::span(v.norms).subspan(first, group)));
  }
  row.spread_in_group = median(std::move(factors));
  auto const smaller = std::lower_bound(row.sorted.begin(), row.sorted.end(), v.norms.front());
  row.first_rank =
      static_cast<double>(smaller - row.sorted.begin()) / static_cast<double>(row.sorted.size());
  return row;
}

/// One row a KV head; when that is too many, the widest KV head of each layer.
std::vector<norm_row> rows_of(eval_result const& result) {
  constexpr std::size_t most = 32;
  std::vector<norm_row> rows;
  for (value_norms const& v : result.values) {
    bool const finite = std::all_of(v.norms.begin(), v.norms.end(),
                                    [](double n) { return std::isfinite(n) && n >= 0; });
    if (finite && !v.norms.empty()) rows.push_back(row_of(v));
  }
  if (rows.size() <= most) return rows;
  std::map<int, norm_row> widest;
  for (norm_row const& r : rows) {
    auto const [it, fresh] = widest.emplace(r.source->layer, r);
    if (!fresh && r.spread > it->second.spread) it->second = r;
  }
  rows.clear();
  for (auto& [layer, row] : widest) rows.push_back(std::move(row));
  return rows;
}

constexpr double width = 1044;
constexpr double row_height = 20;
constexpr double head_height = 30;

void draw_row(svg_chart& chart, norm_row const& r, axis const& x, double y) {
  std::string const name = fmt::format("layer {}, KV head {}", r.source->layer, r.source->kv_head);
  chart.text({152, y + 4}, name, "end");
  auto const bar = [&](double from, double to, double height, std::string_view css) {
    double const left = x(r.at(from));
    chart.rect({left, y - height / 2, std::max(1.0, x(r.at(to)) - left), height}, css,
               fmt::format("{}: {:.0f} % of the tokens lie between {} and {}", name,
                           100 * (to - from), measured(r.at(from)), measured(r.at(to))));
  };
  chart.line({x(r.at(0)), y}, {x(r.at(1)), y}, "whisker");
  for (double const end : {r.at(0), r.at(1)}) {
    chart.line({x(end), y - 4}, {x(end), y + 4}, "whisker");
  }
  bar(.05, .95, 6, "most");
  bar(.25, .75, 10, "half");
  chart.line({x(r.at(.5)), y - 5}, {x(r.at(.5)), y + 5}, "median");
  double const first = r.source->norms.front();
  chart.circle({x(first), y}, 4, "first", fmt::format("{}: token 0 has {}", name, measured(first)));
  chart.text({930, y + 4}, measured(r.spread, 3), "end");
  if (r.spread_in_group > 0) {
    chart.text({1024, y + 4}, measured(r.spread_in_group, 3), "end");
  }
}

std::string picture(std::vector<norm_row> const& rows, std::string_view description) {
  box const area{166, head_height, 690, row_height * static_cast<double>(rows.size()) + 6};
  svg_chart chart("norms", width, area.y + area.height + 46, "Norms of the values by KV head",
                  description);
  std::vector<double> ends;
  for (norm_row const& r : rows) {
    ends.push_back(r.at(0));
    ends.push_back(r.at(1));
  }
  axis x = axis::logarithmic(log_extent(ends), area.x + 14, area.x + area.width);
  x.zero_at(area.x + 4);
  auto const ticks = x.log_ticks(36);
  for (double const t : ticks) {
    chart.line({x(t), area.y}, {x(t), area.y + area.height}, "grid");
  }
  chart.text({930, 10}, "largest /", "aside end");
  chart.text({930, 24}, "smallest", "aside end");
  chart.text({1024, 10}, "same, within", "aside end");
  chart.text({1024, 24}, fmt::format("{} tokens", group), "aside end");
  double y = area.y + 3 + row_height / 2;
  for (norm_row const& r : rows) {
    draw_row(chart, r, x, y);
    y += row_height;
  }
  chart.x_axis(area, x, ticks, plain_number, "|v| of a token, in the model's units (log scale)");
  return std::move(chart).finish();
}

std::string sentence(std::vector<norm_row> const& rows) {
  norm_row const& widest =
      *std::max_element(rows.begin(), rows.end(),
                        [](norm_row const& a, norm_row const& b) { return a.spread < b.spread; });
  std::string text = fmt::format(
      "Layer {}, KV head {}: the largest value vector is {} times as long as the smallest",
      widest.source->layer, widest.source->kv_head, measured(widest.spread));
  if (widest.spread_in_group > 0) {
    text += fmt::format(
        ", and within {} consecutive tokens typically {} times (median): a scale shared along "
        "tokens is set by the longest of them",
        group, measured(widest.spread_in_group));
  }
  auto const small =
      std::count_if(rows.begin(), rows.end(), [](norm_row const& r) { return r.first_rank < .05; });
  text += fmt::format(". Token 0 is among the 5 % smallest in {} of {}.", small,
                      counted(rows.size(), "row"));
  return text;
}

std::string legend() {
  return "<div class=\"legend\">\n" +
         legend_entry("<path d=\"M1 7h20M1 3v8M21 3v8\" class=\"whisker\"/>",
                      "smallest to largest") +
         legend_entry("<rect x=\"1\" y=\"4\" width=\"20\" height=\"6\" class=\"most\"/>",
                      "5 to 95 % of the tokens") +
         legend_entry(
             "<rect x=\"1\" y=\"2\" width=\"20\" height=\"10\" class=\"half\"/>"
             "<path d=\"M11 2v10\" class=\"median\"/>",
             "25 to 75 %, median") +
         legend_entry("<circle cx=\"11\" cy=\"7\" r=\"4\" class=\"first\"/>", "token 0") +
         "</div>\n";
}

}  // namespace

std::string norm_section(eval_result const& result) {
  std::vector<norm_row> const rows = rows_of(result);
  if (rows.empty()) return "";
  std::string const said = sentence(rows);
  return section("Norms of the values", said,
                 legend() + "<div class=\"scroll\">" + picture(rows, said) + "</div>\n");
}

}  // namespace kvarts::tool
