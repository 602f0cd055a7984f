// SPDX-License-Identifier: Apache-2.0
/// @file
/// Long tests use every core: pieces of work, dealt out one by one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace kvarts::test {

/// Calls `work(i)` once for every i in 0..count-1, on all cores. `work` must not throw or assert.
template <class Work>
void for_each_parallel(std::int64_t count, Work const& work) {
  std::atomic<std::int64_t> next{0};
  auto const run = [&] {
    for (std::int64_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads(std::max(1u, std::thread::hardware_concurrency()));
  for (std::thread& thread : threads) thread = std::thread(run);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace kvarts::test
