// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace kvarts::tool {

std::string table::text() const {
  std::vector<std::vector<std::string>> lines(1);
  for (column const& c : columns_) lines[0].push_back(c.heading);
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<std::size_t> widths(columns_.size(), 0);
  for (auto& line : lines) {
    line.resize(columns_.size());
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }

  std::string out;
  for (auto const& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      text += i == 0 ? "" : "  ";
      text += columns_[i].right ? fmt::format("{:>{}}", line[i], widths[i])
                                : fmt::format("{:<{}}", line[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  }
  return out;
}

}  // namespace kvarts::tool
