// SPDX-License-Identifier: Apache-2.0
// Barriers, fences and atomics that kernels forget or misplace.
#include "support/simt/planted_fault.hpp"

#include <kvarts/kernels/launch.cuh>

#include <cstdint>
#include <numeric>
#include <vector>

namespace {

using namespace kvarts::kernels;
using kvarts::kernels::simt::finder;

std::int32_t* shared_ints() { return reinterpret_cast<std::int32_t*>(shared_memory()); }
std::uint32_t* shared_counts() { return reinterpret_cast<std::uint32_t*>(shared_memory()); }

/// What 0..count-1 are in the opposite order, `times` over.
std::vector<int> reversed(int count, int times = 1) {
  std::vector<int> v;
  for (int t = 0; t < times; ++t) {
    for (int i = count; i > 0; --i) v.push_back(1000 * t + i - 1);
  }
  return v;
}

template <bool Right>
KVARTS_KERNEL(96, 1)
reverse_block(int* out) {
  int const i = thread_index();
  shared_ints()[i] = i;
  if (Right) block_barrier();
  out[i] = shared_ints()[block_threads() - 1 - i];
}
template <bool Right>
bool missing_block_barrier() {
  std::vector<int> out(96);
  launch(reverse_block<Right>, {.threads = 96, .shared_bytes = 384}, nullptr, out.data());
  return out == reversed(96);
}

template <bool Right>
KVARTS_KERNEL(64, 1)
reverse_tiles(int* out, int tiles) {
  int const i = thread_index();
  for (int t = 0; t < tiles; ++t) {
    shared_ints()[i] = 1000 * t + i;
    block_barrier();
    out[64 * t + i] = shared_ints()[63 - i];
    if (Right) block_barrier();
  }
}
template <bool Right>
bool missing_barrier_before_reuse() {
  std::vector<int> out(64 * 3);
  launch(reverse_tiles<Right>, {.threads = 64, .shared_bytes = 256}, nullptr, out.data(), 3);
  return out == reversed(64, 3);
}

template <bool Right>
KVARTS_KERNEL(32, 1)
reverse_warp(int* out) {
  int const i = thread_index();
  shared_ints()[i] = i;
  if (Right) warp_barrier();
  out[i] = shared_ints()[31 - i];
}
template <bool Right>
bool missing_warp_barrier() {
  std::vector<int> out(32);
  launch(reverse_warp<Right>, {.shared_bytes = 128}, nullptr, out.data());
  return out == reversed(32);
}

/// A shuffle makes lanes meet, but orders no memory.
template <bool Right>
KVARTS_KERNEL(32, 1)
reverse_after_shuffle(int* out) {
  int const i = thread_index();
  shared_ints()[i] = i;
  int const other = shuffle(i, 31 - i);
  if (Right) warp_barrier();
  out[i] = shared_ints()[other];
}
template <bool Right>
bool shuffle_as_barrier() {
  std::vector<int> out(32);
  launch(reverse_after_shuffle<Right>, {.shared_bytes = 128}, nullptr, out.data());
  return out == reversed(32);
}

template <bool Right>
KVARTS_KERNEL(64, 1)
count_bins(std::uint32_t* out) {
  int const i = thread_index();
  shared_counts()[i] = 0;
  if (Right) block_barrier();
  atomic_add(&shared_counts()[63 - i / 2], 1u);
  block_barrier();
  out[i] = shared_counts()[i];
}
template <bool Right>
bool missing_barrier_after_zeroing() {
  std::vector<std::uint32_t> out(64);
  launch(count_bins<Right>, {.threads = 64, .shared_bytes = 256}, nullptr, out.data());
  return std::accumulate(out.begin(), out.end(), 0u) == 64 && out[63] == 2 && out[31] == 0;
}

template <bool Right>
KVARTS_KERNEL(64, 1)
branch_on_lane(int* out) {
  int const i = thread_index();
  if (Right || i < 40) block_barrier();
  if (!Right && i >= 40) block_barrier();
  out[i] = i;
}
template <bool Right>
bool divergent_barrier() {
  std::vector<int> out(64);
  launch(branch_on_lane<Right>, {.threads = 64}, nullptr, out.data());
  return out[63] == 63;
}

template <bool Right>
KVARTS_KERNEL(64, 1)
loop_by_thread(int* out) {
  int const i = thread_index();
  for (int t = 0; t < (Right ? 2 : 2 + i / 32); ++t) block_barrier();
  out[i] = i;
}
template <bool Right>
bool different_trip_counts() {
  std::vector<int> out(64);
  launch(loop_by_thread<Right>, {.threads = 64}, nullptr, out.data());
  return out[63] == 63;
}

template <bool Right>
KVARTS_KERNEL(64, 1)
return_early(int* out, int n) {
  int const i = thread_index();
  if (!Right && i >= n) return;
  block_barrier();
  if (i < n) out[i] = i;
}
template <bool Right>
bool return_before_barrier() {
  std::vector<int> out(50);
  launch(return_early<Right>, {.threads = 64}, nullptr, out.data(), 50);
  return out[49] == 49;
}

template <bool Right>
KVARTS_KERNEL(64, 1)
two_kinds(int* out) {
  int const i = thread_index();
  if (Right || i < 32) block_barrier();
  if (!Right && i == 40) warp_barrier();
  if (!Right && i > 40) block_barrier();
  out[i] = i;
}
template <bool Right>
bool barriers_that_never_meet() {
  std::vector<int> out(64);
  launch(two_kinds<Right>, {.threads = 64}, nullptr, out.data());
  return out[63] == 63;
}

/// Each block stores a part; the last one to come adds them up.
enum class fences { both, none, only_after_counting };
template <fences Fences, bool Atomic = true>
KVARTS_KERNEL(64, 1)
merge_parts(int* parts, std::uint32_t* counter, int* out) {
  int const i = thread_index();
  parts[64 * block_index() + i] = block_index() + i;
  if (Fences == fences::both) thread_fence();
  block_barrier();
  if (i == 0) {
    shared_counts()[0] = Atomic ? atomic_add(counter, 1u) : (*counter)++;
    if (Fences != fences::none) thread_fence();
  }
  block_barrier();
  if (shared_counts()[0] + 1 != static_cast<std::uint32_t>(grid_blocks())) return;
  int sum = 0;
  for (int b = 0; b < grid_blocks(); ++b) sum += parts[64 * b + i];
  out[i] = sum;
}
template <fences Fences, bool Atomic = true>
bool merged() {
  std::vector<int> parts(64 * 7);
  std::vector<int> out(64);
  std::uint32_t counter = 0;
  launch(merge_parts<Fences, Atomic>, {.blocks = 7, .threads = 64, .shared_bytes = 4}, nullptr,
         parts.data(), &counter, out.data());
  return out[0] == 21 && out[63] == 21 + 7 * 63;
}

/// Whether threads may count on what an earlier block left in shared memory.
template <bool Right>
KVARTS_KERNEL(32, 1)
keep_in_shared(int* out) {
  int const i = thread_index();
  if (Right || block_index() == 0) shared_ints()[i] = 7 * i;
  warp_barrier();
  out[32 * block_index() + i] = shared_ints()[31 - i];
}
template <bool Right>
bool shared_across_blocks() {
  std::vector<int> out(32 * 5);
  launch(keep_in_shared<Right>, {.blocks = 5, .shared_bytes = 128}, nullptr, out.data());
  return out[32 * 4] == 7 * 31;
}

TEST_CASE("faults of barriers, fences and atomics are found") {
  simt::check_planted({
      {"no block barrier between writing and reading", finder::result | finder::tsan,
       missing_block_barrier<false>, missing_block_barrier<true>},
      {"no block barrier before shared memory is reused", finder::result | finder::tsan,
       missing_barrier_before_reuse<false>, missing_barrier_before_reuse<true>},
      {"no warp barrier between writing and reading", finder::result | finder::tsan,
       missing_warp_barrier<false>, missing_warp_barrier<true>},
      {"a shuffle taken for a warp barrier", finder::tsan, shuffle_as_barrier<false>,
       shuffle_as_barrier<true>},
      {"no barrier between zeroing and counting", finder::result | finder::tsan,
       missing_barrier_after_zeroing<false>, missing_barrier_after_zeroing<true>},
      {"barriers in the two branches of a condition", finder::diagnosis, divergent_barrier<false>,
       divergent_barrier<true>},
      {"a barrier in a loop of different trip counts", finder::diagnosis,
       different_trip_counts<false>, different_trip_counts<true>},
      {"a return before a barrier", finder::diagnosis, return_before_barrier<false>,
       return_before_barrier<true>},
      {"threads in barriers that never meet", finder::diagnosis, barriers_that_never_meet<false>,
       barriers_that_never_meet<true>},
      {"no fences around the count of the last block", finder::tsan, merged<fences::none>,
       merged<fences::both>},
      {"a fence after counting, none before", finder::tsan, merged<fences::only_after_counting>,
       merged<fences::both>},
      {"a counter that is not atomic", finder::tsan, merged<fences::both, false>,
       merged<fences::both>},
      {"shared memory expected to outlive its block", finder::result, shared_across_blocks<false>,
       shared_across_blocks<true>},
  });
}

}  // namespace
