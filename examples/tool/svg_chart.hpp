// SPDX-License-Identifier: Apache-2.0
/// @file
/// The few primitives that the report's charts are drawn with: numbers as text, axes, SVG elements.
/// Colours, fonts and line widths are classes of the page's style sheet.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// A position in pixels, y downwards.
struct point {
  double x = 0;
  double y = 0;
};

/// An axis-aligned rectangle in pixels; (x, y) is its upper left corner.
struct box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// Smallest and largest value that an axis shows.
struct extent {
  double low = 0;
  double high = 1;
};

/// Errors below this are rounding noise of the measurement and shown as 0.
inline constexpr double exact_below = 1e-9;

/// `text` with the characters that HTML and XML reserve, and those they forbid, replaced.
std::string escape_html(std::string_view text);

/// A measured value in `digits` significant digits, "n/a" when it is not finite.
std::string measured(double value, int digits = 3);

/// A measured ratio in percent without the sign: .336 is "33.6".
std::string measured_percent(double ratio, int digits = 3);

/// A number that is exact as it stands, without trailing zeros: "0.3", "3.125", "1e-6".
std::string plain_number(double value);

/// Bits a value for columns of a table, in eighths at least: "3.125".
std::string table_bits(double bits);

/// "1 layer", "2 layers".
std::string counted(std::size_t count, std::string_view noun);

/// A width in pixels that `text` does not exceed in any of the page's fonts.
double text_width(std::string_view text, double font_size);

/// Extent of the finite values above `exact_below`, with a margin; for a logarithmic axis.
extent log_extent(std::span<double const> values);

/// Maps values to pixels along one direction; values outside end at the border.
class axis {
 public:
  /// Linear from `range.low` at pixel `from` to `range.high` at pixel `to`.
  static axis linear(extent range, double from, double to) { return {range, from, to, false}; }
  /// Logarithmic; values below `exact_below` map to `from` or to the pixel given to `zero_at`.
  static axis logarithmic(extent range, double from, double to) { return {range, from, to, true}; }

  /// Reserves pixel `px` outside the axis for zero, which has no logarithm.
  void zero_at(double px) { zero_ = px; }
  /// Pixel of `value`, which must be finite.
  double operator()(double value) const;
  /// Those of `candidates` (best first) that are inside and at least `spacing` pixels apart.
  std::vector<double> pick(std::span<double const> candidates, double spacing) const;
  /// Decades, then 1-3 and 1-2-5 steps, as far as they fit `spacing`; logarithmic axes only.
  std::vector<double> log_ticks(double spacing) const;

 private:
  axis(extent range, double from, double to, bool logarithmic)
      : range_(range), from_(from), to_(to), zero_(from), logarithmic_(logarithmic) {}

  extent range_;
  double from_;
  double to_;
  double zero_;
  bool logarithmic_;
};

/// Shapes that tell families apart without colour.
enum class marker_shape { circle, square, triangle, diamond, cross, ring, wedge };

/// The path data of a marker of about 11 pixels around `at`.
std::string marker_path(marker_shape shape, point at);

/// One SVG picture under construction. Texts are escaped; classes are the page's own.
class svg_chart {
 public:
  /// `id` is unique in the page; `title` and `description` are for screen readers.
  svg_chart(std::string_view id, double width, double height, std::string_view title,
            std::string_view description);

  void line(point from, point to, std::string_view css);
  void rect(box where, std::string_view css, std::string_view tooltip = {});
  void circle(point at, double radius, std::string_view css, std::string_view tooltip = {});
  void path(std::string_view data, std::string_view css, std::string_view tooltip = {});
  void polyline(std::span<point const> points, std::string_view css);
  void text(point at, std::string_view text, std::string_view css);

  /// Horizontal grid lines over `area` with their labels on the left.
  void y_grid(box area, axis const& y, std::span<double const> ticks,
              std::function<std::string(double)> const& label);
  /// Tick marks and labels below `area`; `title` on the right below them.
  void x_axis(box area, axis const& x, std::span<double const> ticks,
              std::function<std::string(double)> const& label, std::string_view title);

  /// The finished element.
  std::string finish() &&;

 private:
  std::string body_;
};

}  // namespace kvarts::tool
