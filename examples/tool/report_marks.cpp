// SPDX-License-Identifier: Apache-2.0
#include "report_marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvarts::tool {

namespace {

std::vector<mark> best_of(std::vector<mark> const& marks) {
  std::vector<cost_and_error> costs;
  for (mark const& m : marks) costs.push_back(m.cost);
  std::vector<bool> const best = best_at_bits(costs);
  std::vector<mark> out;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (best[i]) out.push_back(marks[i]);
  }
  return out;
}

/// The least error within `budget` bits, of all families or of all but one.
mark const* least_error(std::vector<mark> const& marks, double budget, family const* but) {
  mark const* least = nullptr;
  for (mark const& m : marks) {
    if (m.cost.bits > budget || m.origin == but) continue;
    if (least == nullptr || m.cost.error < least->cost.error) least = &m;
  }
  return least;
}

}  // namespace

std::string value_text(tradeoff const& t, double error) {
  return error < exact_below ? "0" : t.format(error);
}

std::vector<mark> drawable_marks(eval_result const& result, tradeoff const& t) {
  std::vector<mark> marks;
  for (preset_result const& p : result.presets) {
    cost_and_error const cost{p.bits.*t.bits, p.mean.*t.error};
    if (!(std::isfinite(cost.bits) && cost.bits > 0 && std::isfinite(cost.error))) continue;
    marks.push_back({display_name(p, result), &family_of(p.preset), cost, {}});
  }
  std::stable_sort(marks.begin(), marks.end(), [](mark const& a, mark const& b) {
    return std::pair(a.cost.bits, a.cost.error) < std::pair(b.cost.bits, b.cost.error);
  });
  return marks;
}

std::vector<point> frontier(std::vector<mark> const& marks) {
  std::vector<point> stairs;
  for (mark const& m : best_of(marks)) {
    if (!stairs.empty()) stairs.push_back({m.at.x, stairs.back().y});
    stairs.push_back(m.at);
  }
  return stairs;
}

std::string tradeoff_sentence(std::vector<mark> const& marks, tradeoff const& t) {
  if (marks.empty()) return fmt::format("No preset has a finite {}.", t.error_noun);
  std::string text;
  mark const* previous = nullptr;
  for (double const budget : {3.0, 4.0, 9.0}) {
    mark const* const best = least_error(marks, budget, nullptr);
    if (best == nullptr || best == previous) continue;
    previous = best;
    mark const* const rival = least_error(marks, budget, best->origin);
    std::string const other = rival == nullptr
                                  ? ""
                                  : fmt::format(" (closest other family: {}, {})", rival->name,
                                                value_text(t, rival->cost.error));
    text += fmt::format("{} {} bits {} has the least {}, {} in {} bits{}",
                        text.empty() ? "Up to" : "; up to", budget, best->name, t.error_noun,
                        value_text(t, best->cost.error), plain_number(best->cost.bits), other);
  }
  if (text.empty()) {
    mark const& only = marks.front();
    text = fmt::format("{} reads {} bits and has an {} of {}", only.name,
                       plain_number(only.cost.bits), t.error_noun, value_text(t, only.cost.error));
  }
  return text + ". Lower and further left is better.";
}

std::string omitted_sentence(eval_result const& result, std::vector<mark> const& marks) {
  std::string names;
  for (preset_result const& p : result.presets) {
    std::string const name = display_name(p, result);
    bool const drawn =
        std::any_of(marks.begin(), marks.end(), [&](mark const& m) { return m.name == name; });
    if (!drawn) names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "" : "Not drawn, for want of a finite value: " + names + ".";
}

}  // namespace kvarts::tool
