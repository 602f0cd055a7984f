// SPDX-License-Identifier: Apache-2.0
#include "label_placement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace kvarts::tool {

namespace {

// Costs in pixels of leader: what is worth how long a detour.
constexpr double crossing_leader_cost = 60;
constexpr double crossing_label_cost = 250;
constexpr double crossing_marker_cost = 90;
constexpr double covered_curve_cost = 45;
constexpr double indirect_cost = 6;  // above or below instead of beside
constexpr double no_place = std::numeric_limits<double>::infinity();

double turn(point a, point b, point c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

bool cross(segment const& s, segment const& t) {
  return turn(s.from, s.to, t.from) * turn(s.from, s.to, t.to) < 0 &&
         turn(t.from, t.to, s.from) * turn(t.from, t.to, s.to) < 0;
}

bool contains(box const& b, point p) {
  return p.x > b.x && p.x < b.x + b.width && p.y > b.y && p.y < b.y + b.height;
}

bool cross(segment const& s, box const& b) {
  point const nw{b.x, b.y}, ne{b.x + b.width, b.y};
  point const sw{b.x, b.y + b.height}, se{b.x + b.width, b.y + b.height};
  return contains(b, s.from) || contains(b, s.to) || cross(s, segment{nw, se}) ||
         cross(s, segment{sw, ne});
}

box marker_box(point at) {
  return {at.x - marker_reach, at.y - marker_reach, 2 * marker_reach, 2 * marker_reach};
}

bool inside(box const& b, box const& bounds) {
  return b.x >= bounds.x && b.y >= bounds.y && b.x + b.width <= bounds.x + bounds.width &&
         b.y + b.height <= bounds.y + bounds.height;
}

/// Boxes around the anchor in growing circles, then a grid over everything.
std::vector<box> candidates(label_request const& request, box bounds) {
  constexpr int directions = 32;
  std::vector<box> boxes;
  double const half_width = request.width / 2;
  double const half_height = request.height / 2;
  for (double gap = marker_reach + 1; gap < 260; gap += 8) {
    for (int i = 0; i < directions; ++i) {
      double const angle = 2 * std::numbers::pi * i / directions;
      // Saturating cosines slide the box along the sides of a rectangle around the anchor.
      double const dx = std::clamp(1.6 * std::cos(angle), -1.0, 1.0) * half_width;
      double const dy = std::clamp(1.6 * std::sin(angle), -1.0, 1.0) * half_height;
      boxes.push_back({request.anchor.x + dx + gap * std::cos(angle) - half_width,
                       request.anchor.y + dy + gap * std::sin(angle) - half_height, request.width,
                       request.height});
    }
  }
  for (double y = bounds.y; y + request.height <= bounds.y + bounds.height; y += 8) {
    for (double x = bounds.x; x + request.width <= bounds.x + bounds.width; x += 24) {
      boxes.push_back({x, y, request.width, request.height});
    }
  }
  return boxes;
}

class placement {
 public:
  placement(std::span<label_request const> requests, box bounds, std::span<segment const> curves)
      : requests_(requests), bounds_(bounds), curves_(curves), placed_(requests.size()) {}

  void settle(std::size_t i) {
    placed_[i].reset();
    double least = no_place;
    for (box const& candidate : candidates(requests_[i], bounds_)) {
      double const c = cost(i, candidate, least);
      if (c >= least) continue;
      least = c;
      placed_[i] = candidate;
    }
  }

  std::vector<std::optional<box>> take() && { return std::move(placed_); }

 private:
  double cost(std::size_t i, box const& candidate, double limit) const {
    point const anchor = requests_[i].anchor;
    segment const leader{anchor, nearest_point(candidate, anchor)};
    double total = std::hypot(leader.to.x - anchor.x, leader.to.y - anchor.y);
    if (total >= limit || !inside(candidate, bounds_)) return no_place;
    if (leader.to.y != anchor.y) total += indirect_cost;
    for (std::size_t j = 0; j < requests_.size(); ++j) {
      box const marker = marker_box(requests_[j].anchor);
      if (overlaps(candidate, marker)) return no_place;
      if (j == i) continue;
      if (cross(leader, marker)) total += crossing_marker_cost;
      if (!placed_[j]) continue;
      if (overlaps(candidate, *placed_[j])) return no_place;
      segment const other{requests_[j].anchor, nearest_point(*placed_[j], requests_[j].anchor)};
      if (cross(leader, other)) total += crossing_leader_cost;
      if (cross(leader, *placed_[j]) || cross(other, candidate)) total += crossing_label_cost;
    }
    for (segment const& curve : curves_) {
      if (cross(curve, candidate)) total += covered_curve_cost;
    }
    return total;
  }

  std::span<label_request const> requests_;
  box bounds_;
  std::span<segment const> curves_;
  std::vector<std::optional<box>> placed_;
};

}  // namespace

bool overlaps(box const& a, box const& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

point nearest_point(box const& b, point p) {
  return {std::clamp(p.x, b.x, b.x + b.width), std::clamp(p.y, b.y, b.y + b.height)};
}

std::vector<std::optional<box>> place_labels(std::span<label_request const> requests, box bounds,
                                             std::span<segment const> curves) {
  constexpr int sweeps = 5;  // each label moves again once it knows where the others are
  placement labels(requests, bounds, curves);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (std::size_t i = 0; i < requests.size(); ++i) labels.settle(i);
  }
  return std::move(labels).take();
}

}  // namespace kvarts::tool
