// SPDX-License-Identifier: Apache-2.0
/// @file
/// Work of a host tier on as many threads as the caller says. There is no pool: threads start with
/// a call and end before it returns.
#pragma once

#include <kvarts/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace kvarts::tier {

/// The most threads of one call.
inline constexpr int max_threads = 256;

constexpr problem check_threads(int threads) noexcept {
  if (threads >= 1 && threads <= max_threads) return {};
  return {status::unsupported, "work is done by 1 to {} threads, not {}", max_threads, threads};
}

namespace detail {

/// False where the system has no more threads.
template <class Work>
bool try_start(std::thread& thread, Work const& work) noexcept {
#if defined(__cpp_exceptions)
  try {
    thread = std::thread(work);
  } catch (...) {
    return false;
  }
#else
  thread = std::thread(work);
#endif
  return true;
}

/// Calls `work(i)` for i in 0..parts-1, each on a thread of its own, the last one on this thread;
/// parts for which there is no thread are done here too. `parts` is at most `max_threads`.
template <class Work>
void for_each_part(int parts, Work const& work) noexcept {
  std::array<std::thread, max_threads> threads;
  for (int i = 0; i + 1 < parts; ++i) {
    if (!try_start(threads[static_cast<std::size_t>(i)], [&work, i] { work(i); })) work(i);
  }
  if (parts > 0) work(parts - 1);
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
}

/// Where part `i` of `parts` even parts of `count` begins.
constexpr std::int64_t part_begin(std::int64_t count, int parts, int i) noexcept {
  return count / parts * i + count % parts * i / parts;
}

}  // namespace detail

}  // namespace kvarts::tier
