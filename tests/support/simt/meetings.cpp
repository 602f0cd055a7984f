// SPDX-License-Identifier: Apache-2.0
// Where threads meet: barriers, and collectives, which the last lane to arrive computes.
#include "support/simt/block.hpp"

#include <bit>

namespace kvarts::kernels::simt {

void block::meet_block(call const& c) {
  if (alive_ != count_) {
    fault(("waits in " + c.text() + ", but thread " + std::to_string(first_that_left()) +
           " has ended")
              .c_str());
  }
  if (arrived_ == 0) {
    meeting_ = c;
    first_arrived_ = here.thread;
  } else if (!(meeting_ == c)) {
    fault(("waits in " + c.text() + ", but thread " + std::to_string(first_arrived_) + " in " +
           meeting_.text())
              .c_str());
  }
  void* const sync = memory_->sync_object(phase_);
  release(sync);
  if (++arrived_ < count_) {
    suspend(c);
  } else {
    arrived_ = 0;
    phase_ ^= 1;  // a thread that is ahead must not be waited for by one that is late
    for (int i = 0; i < count_; ++i) {
      if (i != here.thread) wake(*threads_[static_cast<std::size_t>(i)]);
    }
  }
  acquire(sync);
}

void block::meet_warp(call const& c, void* brought, lane_function compute) {
  int const thread = here.thread;
  int const lane = thread % warp_lanes;
  warp& w = warp_of(thread);
  if (w.existing != all_lanes) {
    fault(("calls " + c.text() + " in a warp of " + std::to_string(std::popcount(w.existing)) +
           " lanes")
              .c_str());
  }
  if (w.alive != all_lanes) {
    int const gone = thread - lane + std::countr_one(w.alive);
    fault(("waits in " + c.text() + ", but thread " + std::to_string(gone) + " has ended").c_str());
  }
  if (w.arrived == 0) {
    w.meeting = c;
  } else if (!(w.meeting == c)) {
    int const other = thread - lane + std::countr_zero(w.arrived);
    fault(("waits in " + c.text() + ", but thread " + std::to_string(other) + " in " +
           w.meeting.text())
              .c_str());
  }
  w.brought[lane] = brought;
  w.arrived |= 1u << lane;
  if (w.arrived != all_lanes) return suspend(c);
  w.arrived = 0;
  w.phase ^= 1;
  if (compute != nullptr) compute(w.brought);
  w.ready |= all_lanes & ~(1u << lane);
  ready_warps_ |= 1u << (thread / warp_lanes);
}

void block::synchronize_warp(call const& c) {
  warp const& w = warp_of(here.thread);
  void* const sync = memory_->sync_object(2 + here.thread / warp_lanes * 2 + w.phase);
  release(sync);
  meet_warp(c, nullptr, nullptr);
  acquire(sync);
}

int block::first_that_left() const {
  int warp = 0;
  while (warps_[warp].alive == warps_[warp].existing) ++warp;
  return warp * warp_lanes + std::countr_zero(warps_[warp].existing & ~warps_[warp].alive);
}

void block_barrier(std::source_location at) { current_block().meet_block({"block_barrier", at}); }

void warp_barrier(std::source_location at) {
  current_block().synchronize_warp({"warp_barrier", at});
}

}  // namespace kvarts::kernels::simt
