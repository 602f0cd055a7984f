// SPDX-License-Identifier: Apache-2.0
/// @file
/// The order in which the emulator runs threads and blocks, and what it throws.
#pragma once

#include "support/random.hpp"

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace kvarts::kernels::simt {

/// A kernel did what no device allows. Says which block, which thread, what and where.
struct fault_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A thread runs until it must wait; then the first, the last or any that can goes on.
enum class order { forward, reverse, random };

struct schedule {
  order how = order::forward;
  std::uint64_t seed = 0;
};

inline std::string to_string(schedule const& s) {
  if (s.how == order::random) return "random schedule, seed " + std::to_string(s.seed);
  return s.how == order::forward ? "forward schedule" : "reverse schedule";
}

inline std::array<schedule, 3> all_schedules() {
  return {{{order::forward, 0}, {order::reverse, 0}, {order::random, test::test_seed()}}};
}

/// The schedule of launches from now on, forward at first.
void set_schedule(schedule const& s);
schedule current_schedule();

/// Launches follow `s` until the end of the scope.
class scoped_schedule {
 public:
  explicit scoped_schedule(schedule const& s) : before_(current_schedule()) { set_schedule(s); }
  ~scoped_schedule() { set_schedule(before_); }
  scoped_schedule(scoped_schedule const&) = delete;
  scoped_schedule& operator=(scoped_schedule const&) = delete;

 private:
  schedule before_;
};

/// How many threads of the CPU share the blocks of a launch: the environment's
/// KVARTS_SIMT_THREADS, else one for each core. With one, a random schedule is repeatable across
/// blocks too.
unsigned cpu_threads();

}  // namespace kvarts::kernels::simt
