// SPDX-License-Identifier: Apache-2.0
/// @file
/// Tests run every launch in three schedules, with a sanitizer in two.
#pragma once

#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/simt/schedule.hpp"

namespace kvarts::kernels::simt {

/// Calls `test(schedule)` once in each schedule; failures say in which. Launches follow it.
template <class Test>
void for_each_schedule(Test const& test) {
  for (schedule const& s : all_schedules()) {
    if (test::sanitized && s.how == order::reverse) continue;
    scoped_schedule const scope(s);
    INFO(to_string(s));
    test(s);
  }
}

}  // namespace kvarts::kernels::simt
