// SPDX-License-Identifier: Apache-2.0
#include "svg_chart.hpp"

#include "support/catch.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace kvarts::tool;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("numbers of the report", "[report]") {
  CHECK(measured(.336) == "0.336");
  CHECK(measured(.0094) == "0.00940");
  CHECK(measured(27) == "27.0");
  CHECK(measured(151.04) == "151");
  CHECK(measured(12345.6) == "12346");
  CHECK(measured(7.02704e-5) == "7.03e-5");
  CHECK(measured(-2.5) == "-2.50");
  CHECK(measured(3e12) == "3.00e12");
  CHECK(measured(0) == "0");
  CHECK(measured(.087565, 2) == "0.088");
  CHECK(measured(not_a_number) == "n/a");
  CHECK(measured(-infinite) == "n/a");
  CHECK(measured_percent(.336) == "33.6");
  CHECK(measured_percent(1.51067, 2) == "151");
  CHECK(measured_percent(1e-12) == "0");
  CHECK(plain_number(3.125) == "3.125");
  CHECK(plain_number(100 * .003) == "0.3");
  CHECK(plain_number(1e-6) == "1e-6");
  CHECK(plain_number(infinite) == "n/a");
  CHECK(table_bits(2.625) == "2.625");
  CHECK(table_bits(16) == "16.000");
  CHECK(table_bits(not_a_number) == "n/a");
  CHECK(counted(1, "layer") == "1 layer");
  CHECK(counted(2, "layer") == "2 layers");
}

TEST_CASE("reserved characters are escaped", "[report]") {
  CHECK(escape_html("<a href=\"x\">&'") == "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  CHECK(escape_html(std::string("a\0b\x1B\n", 5)) == "a b  ");
  CHECK(escape_html("\xC3\xA9") == "\xC3\xA9");
}

TEST_CASE("axes map values to pixels", "[report]") {
  axis const x = axis::linear({-10, 30}, 100, 300);
  CHECK(x(-10) == Approx(100));
  CHECK(x(0) == Approx(150));
  CHECK(x(30) == Approx(300));
  CHECK(x(1e9) == Approx(300));
  CHECK(x(-1e9) == Approx(100));

  axis y = axis::logarithmic({.01, 100}, 400, 0);
  CHECK(y(.01) == Approx(400));
  CHECK(y(1) == Approx(200));
  CHECK(y(10) == Approx(100));
  CHECK(y(1e5) == Approx(0).margin(1e-9));
  CHECK(y(0) == Approx(400));
  y.zero_at(420);
  CHECK(y(0) == Approx(420));
  CHECK(y(-1) == Approx(420));
  CHECK(y(1e-6) == Approx(400));
}

TEST_CASE("ticks are inside their axis, sorted and apart", "[report]") {
  axis const y = axis::logarithmic({.012, 1.6}, 400, 0);
  CHECK(y.log_ticks(150) == std::vector<double>{.1, 1});
  for (double const high : {1.3, 4., 30., 1e4, 1e9}) {
    axis const a = axis::logarithmic({.9, high}, 0, 400);
    std::vector<double> const ticks = a.log_ticks(30);
    CAPTURE(high);
    REQUIRE_FALSE(ticks.empty());
    CHECK(ticks.front() >= .9);
    CHECK(ticks.back() <= high);
    for (std::size_t i = 1; i < ticks.size(); ++i) CHECK(a(ticks[i]) - a(ticks[i - 1]) >= 30);
  }
}

TEST_CASE("the extent of a logarithmic axis is finite and holds two ticks", "[report]") {
  for (std::vector<double> const& values : {std::vector<double>{},
                                            {0, -1},
                                            {.336},
                                            {1e-8},
                                            {7, 7, 7},
                                            {1e-3, 4e-3},
                                            {1e-300, 1e300},
                                            {std::numeric_limits<double>::max()},
                                            {not_a_number, infinite, 2}}) {
    extent const e = log_extent(values);
    CAPTURE(e.low, e.high);
    CHECK(std::isfinite(e.high / e.low));
    CHECK(e.low > 0);
    CHECK(e.low < e.high);
    CHECK(axis::logarithmic(e, 0, 400).log_ticks(26).size() >= 2);
  }
  extent const e = log_extent(std::vector<double>{.02, 5});
  CHECK(e.low < .02);
  CHECK(e.high > 5);
}

TEST_CASE("a chart is one element with a title and a description", "[report]") {
  svg_chart chart("a", 100, 50, "1 < 2", "a & b");
  chart.text({1, 2}, "<x>", "tick");
  chart.circle({3, 4}, 2, "dot", "tip \"t\"");
  std::string const svg = std::move(chart).finish();
  CHECK_THAT(svg, ContainsSubstring("role=\"img\" aria-labelledby=\"a-title a-desc\""));
  CHECK_THAT(svg, ContainsSubstring("<title id=\"a-title\">1 &lt; 2</title>"));
  CHECK_THAT(svg, ContainsSubstring("<desc id=\"a-desc\">a &amp; b</desc>"));
  CHECK_THAT(svg, ContainsSubstring(">&lt;x&gt;</text>"));
  CHECK_THAT(svg, ContainsSubstring("<title>tip &quot;t&quot;</title></circle>"));
}
