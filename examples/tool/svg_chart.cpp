// SPDX-License-Identifier: Apache-2.0
#include "svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvarts::tool {

namespace {

/// An element with its closing tag and, if there is one, a tooltip inside.
std::string element(std::string_view name, std::string_view attributes, std::string_view css,
                    std::string_view tooltip) {
  if (tooltip.empty()) return fmt::format("<{} {} class=\"{}\"/>\n", name, attributes, css);
  return fmt::format("<{0} {1} class=\"{2}\"><title>{3}</title></{0}>\n", name, attributes, css,
                     escape_html(tooltip));
}

std::vector<double> scaled(std::initializer_list<double> steps, int first, int last) {
  std::vector<double> values;
  for (int decade = first; decade <= last; ++decade) {
    for (double const step : steps) values.push_back(step * std::pow(10.0, decade));
  }
  return values;
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (char const c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: {
        auto const code = static_cast<unsigned char>(c);
        bool const control = code < 0x20 || code == 0x7F;
        out += control ? ' ' : c;
      }
    }
  }
  return out;
}

std::string measured(double value, int digits) {
  if (!std::isfinite(value)) return "n/a";
  if (value == 0) return "0";
  double const size = std::abs(value);
  if (size < 1e-3 || size >= 1e6) {
    std::string const text = fmt::format("{:.{}e}", value, digits - 1);
    auto const e = text.find('e');
    return fmt::format("{}e{}", text.substr(0, e), std::stoi(text.substr(e + 1)));
  }
  if (size >= std::pow(10.0, digits - 1)) return fmt::format("{:.0f}", value);
  return fmt::format("{:#.{}g}", value, digits);
}

std::string measured_percent(double ratio, int digits) {
  return std::abs(ratio) < exact_below ? "0" : measured(100 * ratio, digits);
}

std::string plain_number(double value) {
  if (!std::isfinite(value)) return "n/a";
  double const size = std::abs(value);
  bool const tiny = size > 0 && size < 1e-3;
  return tiny ? measured(value, 1) : fmt::format("{:.6g}", value);
}

std::string table_bits(double bits) {
  return std::isfinite(bits) ? fmt::format("{:.3f}", bits) : "n/a";
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

double text_width(std::string_view text, double font_size) {
  constexpr double widest_mean = .62;  // DejaVu Sans, the widest usual fallback, in em
  auto const characters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not a UTF-8 continuation
  });
  return static_cast<double>(characters) * widest_mean * font_size;
}

extent log_extent(std::span<double const> values) {
  constexpr double largest_shown = 1e30;  // keeps the arithmetic of axes finite
  double low = std::numeric_limits<double>::max();
  double high = 0;
  for (double const v : values) {
    if (!std::isfinite(v) || v < exact_below) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (high == 0) return {.1, 1};
  constexpr double decades = 1e12;  // more than this below the largest is off the axis
  constexpr double two_ticks = 4;   // a ratio that holds at least two of 1, 2, 5 or 1, 3
  high = std::min(high, largest_shown);
  low = std::clamp(low, high / decades, high);
  double const ratio = high / low;
  double const margin = std::max({1.15, std::pow(ratio, .07), std::sqrt(two_ticks / ratio)});
  return {low / margin, high * margin};
}

double axis::operator()(double value) const {
  double part = (value - range_.low) / (range_.high - range_.low);
  if (logarithmic_) {
    if (value < exact_below) return zero_;
    part = std::log(value / range_.low) / std::log(range_.high / range_.low);
  }
  return from_ + std::clamp(part, 0.0, 1.0) * (to_ - from_);
}

std::vector<double> axis::pick(std::span<double const> candidates, double spacing) const {
  std::vector<double> ticks;
  for (double const c : candidates) {
    bool const inside = c >= range_.low && c <= range_.high;
    bool const apart = std::all_of(ticks.begin(), ticks.end(), [&](double t) {
      return std::abs((*this)(t) - (*this)(c)) >= spacing;
    });
    if (inside && apart) ticks.push_back(c);
  }
  std::sort(ticks.begin(), ticks.end());
  return ticks;
}

std::vector<double> axis::log_ticks(double spacing) const {
  int const first = static_cast<int>(std::floor(std::log10(range_.low)));
  int const last = static_cast<int>(std::ceil(std::log10(range_.high)));
  std::vector<double> candidates = scaled({1}, first, last);
  double const span = std::abs((*this)(range_.high) - (*this)(range_.low));
  bool const room_for_three = span * std::log(1.5) / std::log(range_.high / range_.low) >= spacing;
  for (double const v :
       room_for_three ? scaled({2, 5, 3, 1.5, 7, 4}, first, last) : scaled({3}, first, last)) {
    candidates.push_back(v);
  }
  return pick(candidates, spacing);
}

std::string marker_path(marker_shape shape, point at) {
  auto const [x, y] = at;
  auto const round = [&](double r) {
    return fmt::format("M{:.1f} {:.1f}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z", x - r, y,
                       fmt::arg("r", r), fmt::arg("d", 2 * r));
  };
  std::string const start = fmt::format("M{:.1f} {:.1f}", x, y);
  switch (shape) {
    case marker_shape::circle: return round(5);
    case marker_shape::ring: return round(5) + round(2);
    case marker_shape::square: return start + "m-4.5 -4.5h9v9h-9z";
    case marker_shape::triangle: return start + "m0 -5.5l5.5 9.5h-11z";
    case marker_shape::diamond: return start + "m0 -6l6 6l-6 6l-6 -6z";
    case marker_shape::cross:
      return start + "m-1.8 -5.5h3.6v3.7h3.7v3.6h-3.7v3.7h-3.6v-3.7h-3.7v-3.6h3.7z";
    case marker_shape::wedge: return start + "m0 4l-5.5 -9h11z";
  }
  return start;
}

svg_chart::svg_chart(std::string_view id, double width, double height, std::string_view title,
                     std::string_view description)
    : body_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
                        "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
                        "aria-labelledby=\"{2}-title {2}-desc\">\n"
                        "<title id=\"{2}-title\">{3}</title>\n<desc id=\"{2}-desc\">{4}</desc>\n",
                        width, height, id, escape_html(title), escape_html(description))) {}

void svg_chart::line(point from, point to, std::string_view css) {
  body_ += element("line",
                   fmt::format("x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"", from.x,
                               from.y, to.x, to.y),
                   css, {});
}

void svg_chart::rect(box where, std::string_view css, std::string_view tooltip) {
  body_ += element("rect",
                   fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"",
                               where.x, where.y, where.width, where.height),
                   css, tooltip);
}

void svg_chart::circle(point at, double radius, std::string_view css, std::string_view tooltip) {
  body_ +=
      element("circle", fmt::format("cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"", at.x, at.y, radius),
              css, tooltip);
}

void svg_chart::path(std::string_view data, std::string_view css, std::string_view tooltip) {
  body_ += element("path", fmt::format("d=\"{}\"", data), css, tooltip);
}

void svg_chart::polyline(std::span<point const> points, std::string_view css) {
  std::string data;
  for (point const& p : points) {
    data += fmt::format("{}{:.1f} {:.1f}", data.empty() ? 'M' : 'L', p.x, p.y);
  }
  if (!data.empty()) path(data, css);
}

void svg_chart::text(point at, std::string_view text, std::string_view css) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", at.x, at.y, css,
                       escape_html(text));
}

void svg_chart::y_grid(box area, axis const& y, std::span<double const> ticks,
                       std::function<std::string(double)> const& label) {
  for (double const tick : ticks) {
    double const at = y(tick);
    line({area.x, at}, {area.x + area.width, at}, "grid");
    text({area.x - 8, at + 4}, label(tick), "tick end");
  }
}

void svg_chart::x_axis(box area, axis const& x, std::span<double const> ticks,
                       std::function<std::string(double)> const& label, std::string_view title) {
  double const bottom = area.y + area.height;
  line({area.x, bottom}, {area.x + area.width, bottom}, "frame");
  for (double const tick : ticks) {
    line({x(tick), bottom}, {x(tick), bottom + 5}, "frame");
    text({x(tick), bottom + 18}, label(tick), "tick mid");
  }
  text({area.x + area.width, bottom + 36}, title, "axis end");
}

std::string svg_chart::finish() && { return std::move(body_) + "</svg>\n"; }

}  // namespace kvarts::tool
