// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which rows of an append are in one unit. Slots come in any order, so the warp that has the first
/// row of a unit takes all of them, and the warps of the others have nothing to do.
#pragma once

#include <kvarts/kernels/unit_memory.cuh>

#include <bit>
#include <cstdint>

namespace kvarts::kernels {

/// The slots of the rows of one append, and how many there are in the destination.
class slot_rows {
 public:
  KVARTS_DEVICE slot_rows(std::int64_t const* slots, std::int64_t count, std::int64_t room,
                          int unit)
      : slots_(slots), count_(count), room_(room), unit_(unit) {}

  KVARTS_DEVICE bool is_outside(std::int64_t row) const { return slots_[row] >= room_; }

  /// The unit of a row, -1 for a row that is skipped or outside.
  KVARTS_DEVICE std::int64_t unit_of(std::int64_t row) const {
    return slots_[row] < 0 || is_outside(row) ? -1 : slots_[row] / unit_;
  }

  /// True when no row before this one has its unit. Rows of a prefill come in order: then the row
  /// before answers at once.
  KVARTS_DEVICE bool is_first(std::int64_t row) const {
    if (unit_ == 1) return true;
    std::int64_t const unit = unit_of(row);
    for (std::int64_t end = row; end > 0; end -= warp_lanes) {
      std::int64_t const other = end - 1 - lane_index();
      if (any_lane(other >= 0 && unit_of(other) == unit)) return false;
    }
    return true;
  }

  /// Fills in the rows of the unit of a row that is the first of it, -1 for tokens without one;
  /// `rows` has room for a unit.
  KVARTS_DEVICE void gather(std::int64_t row, std::int32_t* rows) const {
    std::int64_t const unit = unit_of(row);
    warp_barrier();  // `rows` may be in use
    for (int i = lane_index(); i < unit_; i += warp_lanes) rows[i] = -1;
    warp_barrier();
    int found = 0;
    for (std::int64_t begin = row; begin < count_ && found < unit_; begin += warp_lanes) {
      std::int64_t const other = begin + lane_index();
      bool const same = other < count_ && unit_of(other) == unit;
      if (same) rows[slots_[other] % unit_] = static_cast<std::int32_t>(other);
      found += std::popcount(ballot(same));
    }
  }

 private:
  std::int64_t const* slots_;
  std::int64_t count_;
  std::int64_t room_;
  int unit_;
};

}  // namespace kvarts::kernels
