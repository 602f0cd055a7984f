// SPDX-License-Identifier: Apache-2.0
#include "label_placement.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <vector>

namespace {

using namespace kvarts::tool;

constexpr box bounds{40, 20, 700, 400};

/// Length of the overlap of [a, a + m) and [b, b + n); written without the tested `overlaps`.
double shared(double a, double m, double b, double n) {
  return std::min(a + m, b + n) - std::max(a, b);
}

bool apart(box const& a, box const& b) {
  return shared(a.x, a.width, b.x, b.width) <= 0 || shared(a.y, a.height, b.y, b.height) <= 0;
}

void check_places(std::vector<label_request> const& requests,
                  std::vector<std::optional<box>> const& places, box area) {
  REQUIRE(places.size() == requests.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i]) continue;
    box const& b = *places[i];
    CHECK(b.width == requests[i].width);
    CHECK(b.height == requests[i].height);
    bool const inside = b.x >= area.x && b.y >= area.y && b.x + b.width <= area.x + area.width &&
                        b.y + b.height <= area.y + area.height;
    CHECK(inside);
    for (std::size_t j = 0; j < places.size(); ++j) {
      point const at = requests[j].anchor;
      CAPTURE(i, j);
      CHECK(apart(b, {at.x - 5, at.y - 5, 10, 10}));  // the marker
      if (j > i && places[j]) CHECK(apart(b, *places[j]));
    }
  }
}

}  // namespace

TEST_CASE("a lone label is beside its point", "[report]") {
  std::vector<label_request> const one{{{300, 200}, 60, 14}};
  auto const places = place_labels(one, bounds, {});
  check_places(one, places, bounds);
  REQUIRE(places[0]);
  CHECK(places[0]->x > 300);
  CHECK(places[0]->x < 320);
  CHECK(places[0]->y < 200);
  CHECK(places[0]->y + 14 > 200);
}

TEST_CASE("labels of points that coincide do not overlap", "[report]") {
  std::vector<label_request> requests(14, {{390, 210}, 120, 14});
  requests.push_back({{391, 210}, 90, 28});
  requests.push_back({{390, 212}, 150, 42});
  auto const places = place_labels(requests, bounds, {});
  check_places(requests, places, bounds);
  for (auto const& place : places) CHECK(place);
}

TEST_CASE("labels of points in the corners and on the border stay inside", "[report]") {
  std::vector<label_request> requests;
  for (double const x : {40., 390., 740.}) {
    for (double const y : {20., 220., 420.}) requests.push_back({{x, y}, 140, 14});
  }
  auto const places = place_labels(requests, bounds, {});
  check_places(requests, places, bounds);
  for (auto const& place : places) CHECK(place);
}

TEST_CASE("random crowds of points get labels that do not overlap", "[report]") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> column(0, 5);
    std::uniform_real_distribution<double> part(0, 1);
    std::vector<label_request> requests;
    for (int i = 0; i < 24; ++i) {  // few columns, as presets share bits
      requests.push_back(
          {{100 + 40. * column(random), 60 + 120 * part(random)}, 30 + 110 * part(random), 14});
    }
    std::vector<segment> const curves{{{40, 300}, {400, 100}}};
    check_places(requests, place_labels(requests, bounds, curves), bounds);
  }
}

TEST_CASE("a label without room is left out", "[report]") {
  box const small{0, 0, 100, 40};
  std::vector<label_request> const requests(9, {{50, 20}, 45, 14});
  auto const places = place_labels(requests, small, {});
  check_places(requests, places, small);
  auto const shown = std::count_if(places.begin(), places.end(),
                                   [](std::optional<box> const& b) { return b.has_value(); });
  CHECK(shown < 9);
  CHECK_FALSE(place_labels(std::vector<label_request>{{{50, 20}, 101, 14}}, small, {})[0]);
}

TEST_CASE("a label avoids a curve when there is room elsewhere", "[report]") {
  std::vector<label_request> const one{{{300, 200}, 60, 14}};
  std::vector<segment> const curve{{{300, 200}, {700, 200}}};
  auto const places = place_labels(one, bounds, curve);
  REQUIRE(places[0]);
  bool const covered = places[0]->y < 200 && places[0]->y + 14 > 200 && places[0]->x > 300;
  CHECK_FALSE(covered);
}
