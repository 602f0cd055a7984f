// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which pages of a pool are free, and how many sequences share each of the others.
#pragma once

#include <cstdint>
#include <vector>

namespace kvarts {

/// Reference counts of the pages of a pool. Allocates when made, never afterwards.
class page_pool {
 public:
  explicit page_pool(std::int32_t pages) : counts_(static_cast<std::size_t>(pages), 0) {
    free_.reserve(counts_.size());
    for (std::int32_t page = pages; page-- > 0;) free_.push_back(page);
  }

  std::int64_t free_pages() const noexcept { return static_cast<std::int64_t>(free_.size()); }

  std::int32_t shares(std::int32_t page) const noexcept {
    return counts_[static_cast<std::size_t>(page)];
  }

  /// A free page, now with one owner; there must be one.
  std::int32_t take() noexcept {
    std::int32_t const page = free_.back();
    free_.pop_back();
    counts_[static_cast<std::size_t>(page)] = 1;
    return page;
  }

  void share(std::int32_t page) noexcept { ++counts_[static_cast<std::size_t>(page)]; }

  /// One owner less; the last one frees the page.
  void release(std::int32_t page) noexcept {
    if (--counts_[static_cast<std::size_t>(page)] == 0) free_.push_back(page);
  }

  /// The free page `to` takes the owners of `from`, which becomes free. Both must be of the pool.
  void move(std::int32_t from, std::int32_t to) noexcept {
    counts_[static_cast<std::size_t>(to)] = counts_[static_cast<std::size_t>(from)];
    counts_[static_cast<std::size_t>(from)] = 0;
    for (std::int32_t& page : free_) {
      if (page == to) page = from;
    }
  }

 private:
  std::vector<std::int32_t> counts_;
  std::vector<std::int32_t> free_;
};

}  // namespace kvarts
