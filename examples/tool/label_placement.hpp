// SPDX-License-Identifier: Apache-2.0
/// @file
/// Finds places for the labels of points in a chart so that nothing overlaps.
#pragma once

#include "svg_chart.hpp"

#include <optional>
#include <span>
#include <vector>

namespace kvarts::tool {

/// A label that wants to be near `anchor`.
struct label_request {
  point anchor;
  double width = 0;
  double height = 0;
};

/// A straight piece of a curve that labels should not cover.
struct segment {
  point from;
  point to;
};

/// Half the side of the square around every anchor that stays free for its marker.
inline constexpr double marker_reach = 7;

/// True when two boxes share more than a border.
bool overlaps(box const& a, box const& b);

/// The point of `b` that is closest to `p`, where a leader line ends.
point nearest_point(box const& b, point p);

/// One box per request, inside `bounds`, that overlaps no other label and no marker; empty where
/// there is no room left. Prefers short leaders that cross nothing, and free `curves`.
std::vector<std::optional<box>> place_labels(std::span<label_request const> requests, box bounds,
                                             std::span<segment const> curves);

}  // namespace kvarts::tool
