// SPDX-License-Identifier: Apache-2.0
#include "label_placement.hpp"
#include "report_marks.hpp"
#include "report_parts.hpp"
#include "report_style.hpp"
#include "svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvarts::tool {

namespace {

constexpr double chart_width = 1044;
constexpr double zero_band = 40;
constexpr double line_height = 14;
constexpr double plot_top = 30;
constexpr double left = 64;
constexpr double right = 1030;
constexpr double few_bits = 6;  // more are a panel of their own: their errors are far smaller
constexpr double many_bits_width = 250;

/// Labels of marks that coincide are one label, broken into lines.
struct mark_label {
  point anchor;
  std::string css;
  std::vector<std::string> lines;
};

std::vector<mark_label> labels_of(std::vector<mark> const& marks) {
  constexpr double same = 4;           // pixels
  constexpr std::size_t longest = 30;  // characters of a line that joins names
  std::vector<mark_label> labels;
  for (mark const& m : marks) {
    auto const at_same_place = [&](mark_label const& l) {
      return l.css == m.origin->css && std::abs(l.anchor.x - m.at.x) < same &&
             std::abs(l.anchor.y - m.at.y) < same;
    };
    auto const found = std::find_if(labels.begin(), labels.end(), at_same_place);
    if (found == labels.end()) {
      labels.push_back({m.at, std::string(m.origin->css), {m.name}});
      continue;
    }
    std::string& last = found->lines.back();
    last += ",";
    if (last.size() + m.name.size() < longest) {
      last += " " + m.name;
    } else {
      found->lines.push_back(m.name);
    }
  }
  return labels;
}

std::vector<label_request> requests_of(std::vector<mark_label> const& labels) {
  std::vector<label_request> requests;
  for (mark_label const& l : labels) {
    double width = 0;
    for (std::string const& line : l.lines) width = std::max(width, text_width(line, 12));
    requests.push_back({l.anchor, width, line_height * static_cast<double>(l.lines.size())});
  }
  return requests;
}

/// The text lies against the mark: on the side that faces it, or centred above or below it.
void draw_lines(svg_chart& chart, mark_label const& label, box place) {
  bool const before = place.x + place.width <= label.anchor.x;
  bool const after = place.x >= label.anchor.x;
  double const x = place.x + (before ? place.width : (after ? 0 : place.width / 2));
  double y = place.y + 11;
  for (std::string const& line : label.lines) {
    chart.text({x, y}, line, before ? "halo end" : (after ? "halo" : "halo mid"));
    y += line_height;
  }
}

void draw_labels(svg_chart& chart, box area, std::vector<mark> const& marks,
                 std::vector<point> const& stairs) {
  std::vector<segment> curves;
  for (std::size_t i = 1; i < stairs.size(); ++i) curves.push_back({stairs[i - 1], stairs[i]});
  std::vector<mark_label> const labels = labels_of(marks);
  auto const places = place_labels(requests_of(labels), area, curves);
  constexpr double far = 14;  // pixels from which a leader is needed
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (!places[i]) continue;
    point const end = nearest_point(*places[i], labels[i].anchor);
    point const gap{end.x - labels[i].anchor.x, end.y - labels[i].anchor.y};
    if (std::hypot(gap.x, gap.y) > far) chart.line(labels[i].anchor, end, "leader");
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (!places[i]) continue;
    draw_lines(chart, labels[i], *places[i]);
  }
}

/// Moves marks of different families that would cover each other apart, along x only.
void dodge(std::vector<mark>& marks) {
  constexpr double covers = 9;
  constexpr double apart = 11;
  for (std::size_t i = 1; i < marks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      bool const covered = marks[i].origin != marks[j].origin &&
                           std::abs(marks[i].at.x - marks[j].at.x) < covers &&
                           std::abs(marks[i].at.y - marks[j].at.y) < covers;
      if (covered) marks[i].at.x = marks[j].at.x + apart;
    }
  }
}

/// The value axis of a panel; draws its grid and, if some mark is exact, a band for zero.
axis draw_errors(svg_chart& chart, box area, std::vector<mark> const& marks, tradeoff const& t) {
  std::vector<double> errors;
  for (mark const& m : marks) errors.push_back(m.cost.error);
  bool const has_zero =
      std::any_of(errors.begin(), errors.end(), [](double e) { return e < exact_below; });
  if (has_zero) area.height -= zero_band;
  double const bottom = area.y + area.height;
  axis y = axis::logarithmic(log_extent(errors), bottom, area.y);
  if (has_zero) {
    y.zero_at(bottom + zero_band / 2);
    chart.rect({area.x, bottom, area.width, zero_band}, "band");
    chart.text({area.x - 8, bottom + zero_band / 2 + 4}, "0", "tick end");
  }
  chart.y_grid(area, y, y.log_ticks(32), t.tick);
  return y;
}

void draw_panel(svg_chart& chart, box area, std::vector<mark> marks, tradeoff const& t,
                std::string_view bits_title) {
  axis const y = draw_errors(chart, area, marks, t);
  // Marks are sorted by bits.
  double const fewest = marks.front().cost.bits;
  double const most = marks.back().cost.bits;
  double const margin = std::max(1.1, std::sqrt(2 * fewest / most));  // at least one octave
  extent const range{fewest / margin, most * margin};
  axis const x = axis::logarithmic(range, area.x, area.x + area.width);
  constexpr std::array ticks{2.,  4.,  8.,  16., 3.,  1.,  6., 12., 32.,
                             2.5, 3.5, 4.5, 5.,  1.5, 10., 7., 14., 9.};
  chart.x_axis(area, x, x.pick(ticks, 28), plain_number, bits_title);
  for (mark& m : marks) m.at = {x(m.cost.bits), y(m.cost.error)};
  std::vector<point> const stairs = frontier(marks);
  chart.polyline(stairs, "frontier");
  dodge(marks);
  draw_labels(chart, area, marks, stairs);
  for (mark const& m : marks) {
    chart.path(marker_path(m.origin->shape, m.at), fmt::format("marker {}", m.origin->css),
               fmt::format("{}: {} bits, {} {}", m.name, plain_number(m.cost.bits), t.error_noun,
                           value_text(t, m.cost.error)));
  }
}

/// One panel, or two of different scale when there are presets of few and of many bits.
std::string picture(std::vector<mark> const& marks, tradeoff const& t,
                    std::string_view description) {
  double const height = std::clamp(120 + 18 * static_cast<double>(marks.size()), 190.0, 432.0);
  svg_chart chart(t.id, chart_width, plot_top + height + 48, t.heading, description);
  chart.text({8, 16}, t.error_title, "axis");
  auto const split = std::find_if(marks.begin(), marks.end(),
                                  [](mark const& m) { return m.cost.bits > few_bits; });
  box area{left, plot_top, right - left, height};
  if (split == marks.begin() || split == marks.end()) {
    draw_panel(chart, area, marks, t, t.bits_title);
    return std::move(chart).finish();
  }
  box const many{right - many_bits_width, plot_top, many_bits_width, height};
  chart.text({many.x - 48, 16}, fmt::format("the same above {} bits, another scale", few_bits),
             "axis");
  area.width = many.x - 72 - left;
  draw_panel(chart, area, {marks.begin(), split}, t, t.bits_title);
  draw_panel(chart, many, {split, marks.end()}, t, "bits (log scale)");
  return std::move(chart).finish();
}

std::string legend(std::vector<mark> const& marks) {
  std::string entries;
  for (family const& f : families()) {
    bool const used =
        std::any_of(marks.begin(), marks.end(), [&](mark const& m) { return m.origin == &f; });
    if (!used) continue;
    entries += legend_entry(
        fmt::format("<path d=\"{}\" class=\"marker {}\"/>", marker_path(f.shape, {11, 7}), f.css),
        f.name);
  }
  entries +=
      legend_entry("<path d=\"M1 3h10v8h10\" class=\"frontier\"/>", "least error for so many bits");
  return "<div class=\"legend\">\n" + entries + "</div>\n";
}

std::string tradeoff_section(eval_result const& result, tradeoff const& t) {
  if (result.presets.empty()) return "";
  std::vector<mark> const marks = drawable_marks(result, t);
  std::string const said = tradeoff_sentence(marks, t);
  std::string const omitted = omitted_sentence(result, marks);
  std::string body;
  if (!marks.empty()) {
    body = legend(marks) + "<div class=\"scroll\">" + picture(marks, t, said) + "</div>\n";
  }
  if (!omitted.empty()) body += "<p class=\"note\">" + escape_html(omitted) + "</p>\n";
  return section(t.heading, said, body);
}

}  // namespace

std::string output_error_section(eval_result const& result) {
  return tradeoff_section(
      result, {"output", "Output error against bits", &effective_bits::mean,
               "bits a value, mean of keys and values (log scale)", &measures::output_rel_err,
               "output error", "error of the attention output relative to its norm (log scale)",
               [](double v) { return measured_percent(v) + " %"; },
               [](double v) { return plain_number(100 * v) + " %"; }});
}

std::string attention_section(eval_result const& result) {
  return tradeoff_section(
      result, {"attention", "Attention error against key bits", &effective_bits::k,
               "bits a key element (log scale)", &measures::attention_kl, "attention KL",
               "KL divergence of the attention weights, nats (log scale)",
               [](double v) { return measured(v) + " nats"; }, plain_number});
}

}  // namespace kvarts::tool
