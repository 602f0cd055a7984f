// SPDX-License-Identifier: Apache-2.0
#include "unknown_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace kvarts::tool {

namespace {

/// Letters to insert, remove or replace to make one of the other (Levenshtein's distance).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t const replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> near_names(std::string_view name, std::vector<std::string> const& known) {
  constexpr std::size_t longest = 64;  // nobody meant a longer one
  if (name.empty() || name.size() > longest) return {};
  std::size_t const most = std::max<std::size_t>(1, name.size() / 4);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (std::string const& candidate : known) {
    std::size_t const d = candidate.starts_with(name) ? 1 : distance(name, candidate);
    if (d <= most) near.emplace_back(d, candidate);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](auto const& a, auto const& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [d, candidate] : near) {
    if (names.size() < 3) names.push_back(std::move(candidate));
  }
  return names;
}

std::string unknown_name(std::string_view what, std::string_view name,
                         std::vector<std::string> const& known, std::string_view advice) {
  auto const near = near_names(name, known);
  if (near.empty()) return fmt::format("unknown {} {}; {}", what, in_quotes(name), advice);
  return fmt::format("unknown {} {}; did you mean {}?", what, in_quotes(name),
                     fmt::join(near, " or "));
}

}  // namespace kvarts::tool
