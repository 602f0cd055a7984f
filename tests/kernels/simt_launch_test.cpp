// SPDX-License-Identifier: Apache-2.0
// What the emulator runs, in which order, and how it says what a kernel does wrong.
#include "support/catch.hpp"
#include "support/simt/for_each_schedule.hpp"

#include <kvarts/kernels/launch.cuh>

#include <cstdint>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace {

using namespace kvarts::kernels;

/// What a launch throws, else nothing.
template <class... Parameters>
std::string fault_of(void (*kernel)(Parameters...), launch_shape const& shape,
                     std::type_identity_t<Parameters>... arguments) {
  try {
    launch<Parameters...>(kernel, shape, nullptr, arguments...);
  } catch (simt::fault_error const& e) {
    return e.what();
  }
  return {};
}

struct visit {
  int x, y, z, thread;
  bool operator<(visit const& o) const {
    return std::tie(x, y, z, thread) < std::tie(o.x, o.y, o.z, o.thread);
  }
};

KVARTS_KERNEL(40, 1) note_visits(visit* visits, std::uint32_t* count) {
  visits[atomic_add(count, 1u)] = {block_index(), block_index_y(), block_index_z(), thread_index()};
  if (block_threads() != 40 || grid_blocks() != 3) simt::fault("has a wrong shape");
}

TEST_CASE("every thread of every block runs once") {
  simt::for_each_schedule([](simt::schedule const&) {
    std::vector<visit> visits(3 * 2 * 2 * 40);
    std::uint32_t count = 0;
    launch(note_visits, {.blocks = 3, .blocks_y = 2, .blocks_z = 2, .threads = 40}, nullptr,
           visits.data(), &count);
    CHECK(count == visits.size());
    std::set<visit> const different(visits.begin(), visits.end());
    CHECK(different.size() == visits.size());
    CHECK(different.rbegin()->x + different.rbegin()->thread == 2 + 39);
  });
}

KVARTS_KERNEL(64, 1) note_order(int* order, std::uint32_t* count) {
  order[atomic_add(count, 1u)] = thread_index();
}
std::vector<int> order_of_threads(simt::schedule const& s) {
  simt::scoped_schedule const scope(s);
  std::vector<int> order(64);
  std::uint32_t count = 0;
  launch(note_order, {.threads = 64}, nullptr, order.data(), &count);
  return order;
}

TEST_CASE("schedules are three orders, the random one repeatable") {
  std::vector<int> ascending(64);
  std::iota(ascending.begin(), ascending.end(), 0);
  CHECK(order_of_threads({simt::order::forward, 0}) == ascending);
  CHECK(order_of_threads({simt::order::reverse, 0}) ==
        std::vector<int>(ascending.rbegin(), ascending.rend()));
  auto const random = order_of_threads({simt::order::random, 5});
  CHECK(random != ascending);
  CHECK(random == order_of_threads({simt::order::random, 5}));
  CHECK(random != order_of_threads({simt::order::random, 6}));
  CHECK(simt::to_string({simt::order::random, 5}) == "random schedule, seed 5");
}

KVARTS_KERNEL(1, 1) overwrite_poison(std::uint32_t* poisoned, int words) {
  auto* const shared = reinterpret_cast<std::uint32_t*>(shared_memory());
  for (int i = 0; i < words; ++i) {
    if (shared[i] == 0xFFFFFFFFu) atomic_add(poisoned, 1u);
    shared[i] = 7;
  }
}

TEST_CASE("shared memory of each block is poisoned") {
  std::uint32_t poisoned = 0;
  launch(overwrite_poison, {.blocks = 9, .threads = 1, .shared_bytes = 20}, nullptr, &poisoned, 5);
  CHECK(poisoned == 9 * 5);
}

KVARTS_KERNEL(1024, 1) nothing() {}
KVARTS_KERNEL(32, 1) launch_another() { launch(nothing, {}, nullptr); }
KVARTS_KERNEL(64, 1) wait_apart() {
  if (thread_index() < 48) {
    block_barrier();
  } else {
    warp_barrier();
  }
}
KVARTS_KERNEL(64, 1) throw_error() {
  if (block_index() == 1 && thread_index() == 3) throw std::out_of_range("an error of a test");
  block_barrier();
}

TEST_CASE("launches that no device takes are refused in a sentence") {
  CHECK(fault_of(nothing, {.threads = 0}) == "a launch asks for 0 threads a block, not 1 to 1024");
  CHECK(fault_of(nothing, {.threads = 1025}) ==
        "a launch asks for 1025 threads a block, not 1 to 1024");
  CHECK(fault_of(nothing, {.threads = 1024}).empty());
  CHECK(fault_of(nothing, {.blocks_y = 65536}) ==
        "a launch asks for 1 x 65536 x 1 blocks, more than 2147483647 x 65535 x 65535");
  CHECK(fault_of(nothing, {.blocks = 1u << 20, .blocks_y = 17}) ==
        "a launch asks for more blocks than the emulator runs, 16777216");
  CHECK(fault_of(nothing, {.shared_bytes = 232449}) ==
        "a launch asks for 232449 bytes of shared memory, more than 232448");
  CHECK(fault_of(nothing, {.shared_bytes = 232448}).empty());
  CHECK(fault_of(launch_another, {}) == "a kernel launches a kernel");
  CHECK(launch(nothing, {.blocks = 0}, nullptr) == cudaSuccess);
}

TEST_CASE("faults name block, thread and place") {
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(fault_of(wait_apart, {.threads = 64}),
             ContainsSubstring("block 0, thread 48 waits in warp_barrier (simt_launch_test.cpp:") ||
                 ContainsSubstring("block 0 is deadlocked: thread 0 waits in block_barrier (simt"));
  CHECK_THROWS_WITH(warp_barrier(), "a kernel's primitive is called outside of kernels");
  CHECK_THROWS_AS(launch(throw_error, {.blocks = 3, .threads = 64}, nullptr), std::out_of_range);
  CHECK(fault_of(nothing, {.blocks = 3, .threads = 64}).empty());
}

}  // namespace
