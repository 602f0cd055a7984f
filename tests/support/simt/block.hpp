// SPDX-License-Identifier: Apache-2.0
/// @file
/// A block of GPU threads: each a fiber, all on one thread of the CPU, one of them running.
#pragma once

#include "support/simt/block_memory.hpp"
#include "support/simt/context.hpp"
#include "support/simt/sanitizers.hpp"
#include "support/simt/schedule.hpp"

#include <kvarts/kernels/primitives.cuh>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvarts::kernels::simt {

inline constexpr int most_threads = 1024;
inline constexpr int most_warps = most_threads / warp_lanes;
inline constexpr std::uint32_t all_lanes = 0xFFFFFFFFu;

/// A call that threads wait in.
struct call {
  char const* name = "";
  std::source_location at;

  bool operator==(call const& other) const;
  std::string text() const;
};

/// 16 bytes on their way to shared memory, of a thread's n-th group.
struct copy_under_way {
  std::byte* to;
  words4 data;
  int group;
};

/// Bytes on their way to shared memory that an mbarrier counts.
struct bulk_copy_under_way {
  std::byte* to;
  std::byte const* from;
  std::uint32_t bytes;
  std::uint64_t* barrier;
};

class block;

struct gpu_thread {
  block* of = nullptr;
  int index = 0;
  call waits_in;
  std::uint64_t const* waits_for = nullptr;  // an mbarrier
  std::vector<copy_under_way> copies;
  int committed_groups = 0;
  bool has_fenced = false;
  void* atomics[8] = {};  // the last places, which a fence acquires
  unsigned next_atomic = 0;
  std::optional<fiber> stack;
};

struct warp {
  std::uint32_t existing = 0;
  std::uint32_t alive = 0;
  std::uint32_t ready = 0;
  std::uint32_t arrived = 0;
  call meeting;  // of those that arrived
  void* brought[warp_lanes] = {};
  int phase = 0;
};

/// The result of a collective, read from and written to what each lane brought.
using lane_function = void (*)(void* const (&brought)[warp_lanes]);

class block {
 public:
  block() = default;
  ~block() { retire_fibers(); }
  block(block const&) = delete;
  block& operator=(block const&) = delete;

  /// Runs `body` as each thread of the block `where`; throws the first thing that one of them
  /// threw.
  void run(place const& where, schedule const& order, std::function<void()> const& body);

  // Below, what primitives do in the thread that runs.
  void meet_block(call const& c);
  void meet_warp(call const& c, void* brought, lane_function compute);
  /// As a barrier, which orders memory too.
  void synchronize_warp(call const& c);
  gpu_thread& running();
  /// Waits until `wake`.
  void suspend(call const& c);
  void wake(gpu_thread const& t);
  /// Wakes all that wait for an mbarrier.
  void wake_waiters(std::uint64_t const* barrier);
  std::vector<bulk_copy_under_way>& bulk_copies() { return bulk_copies_; }

 private:
  static void thread_main(void* t);
  void run_thread(gpu_thread& t);
  void prepare(place const& where, schedule const& order);
  void add_threads();
  void leave(gpu_thread const& t);
  /// Lets copies to some mbarrier arrive, now that no thread can go on otherwise.
  bool deliver_bulk_copies();
  void stop(std::exception_ptr why);
  std::exception_ptr deadlock() const;
  context& next();
  int pick(std::uint32_t set);
  int first_that_left() const;
  void retire_fibers();
  warp& warp_of(int thread) { return warps_[thread / warp_lanes]; }

  std::vector<std::unique_ptr<gpu_thread>> threads_;  // kept for the next block
  warp warps_[most_warps];
  std::uint32_t ready_warps_ = 0;
  int count_ = 0;
  int alive_ = 0;
  int arrived_ = 0;  // at the block's barrier
  int first_arrived_ = 0;
  call meeting_;
  int phase_ = 0;
  context main_;
  order order_ = order::forward;
  test::random_source random_{0};
  std::function<void()> const* body_ = nullptr;
  std::exception_ptr failure_;
  std::optional<block_memory> memory_;
  std::vector<bulk_copy_under_way> bulk_copies_;
  bool retiring_ = false;
};

/// The block that runs on this thread of the CPU; throws outside a kernel.
block& current_block();
bool in_kernel();

/// Stands for the end of all threads, which the end of a launch waits for.
extern std::uint64_t end_of_threads;

}  // namespace kvarts::kernels::simt
