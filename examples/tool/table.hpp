// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain text tables with aligned columns.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kvarts::tool {

/// A column's heading; numbers are set to the right.
struct column {
  std::string heading;
  bool right = true;
};

/// Rows of text under headings. Columns are as wide as their widest cell and two spaces apart.
class table {
 public:
  explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}

  /// One cell per column; missing ones at the end are empty.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  /// The whole table, a line per row, without spaces at line ends.
  std::string text() const;

 private:
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace kvarts::tool
