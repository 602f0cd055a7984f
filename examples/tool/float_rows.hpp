// SPDX-License-Identifier: Apache-2.0
/// @file
/// Rows of any element type as float32, a head after another.
#pragma once

#include <kvarts/rows.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kvarts::tool {

/// Rows `[tokens, heads, head_dim]` in any order as float32 `[heads, tokens, head_dim]`.
class float_rows {
 public:
  float_rows() = default;
  explicit float_rows(source_view rows)
      : head_size_(static_cast<std::size_t>(rows.map.tokens * rows.map.head_dim)),
        numbers_(head_size_ * static_cast<std::size_t>(rows.map.heads)) {
    float* row = numbers_.data();
    for (int h = 0; h < rows.map.heads; ++h) {
      for (std::int64_t t = 0; t < rows.map.tokens; ++t, row += rows.map.head_dim) {
        detail::load_finite(rows, h, t, row);
      }
    }
  }
  /// Takes numbers that are in this order already.
  float_rows(std::vector<float> numbers, int heads)
      : head_size_(numbers.size() / static_cast<std::size_t>(heads)),
        numbers_(std::move(numbers)) {}

  /// The rows of one head, `[tokens, head_dim]`.
  std::span<float const> head(std::size_t h) const {
    return std::span(numbers_).subspan(h * head_size_, head_size_);
  }

 private:
  std::size_t head_size_ = 0;
  std::vector<float> numbers_;
};

}  // namespace kvarts::tool
