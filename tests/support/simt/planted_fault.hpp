// SPDX-License-Identifier: Apache-2.0
/// @file
/// Kernels that are wrong on purpose show what the emulator and the sanitizers find; each has a
/// twin that is right, in which they find nothing.
#pragma once

#include "support/catch.hpp"
#include "support/simt/schedule.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace kvarts::kernels::simt {

/// What finds faults, as a set: wrong results, the emulator's own diagnosis, the sanitizers
/// (address, undefined behaviour, thread); a crash that none of them explains.
enum class finder : unsigned {
  none = 0,
  result = 1,
  diagnosis = 2,
  asan = 4,
  ubsan = 8,
  tsan = 16,
  crash = 32
};

constexpr finder operator|(finder a, finder b) {
  return static_cast<finder>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr finder operator&(finder a, finder b) {
  return static_cast<finder>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
std::string to_string(finder set);

/// Launches a kernel and says whether its results are right.
using trial = bool (*)();

struct planted_fault {
  char const* name;
  finder found_by;
  trial wrong;
  trial right;
};

/// What finds a fault of the trial, run in a process of its own in this schedule; `text` is what
/// that process wrote.
finder findings(trial run, schedule const& s, std::string& text);

/// Those of a fault's finders that must find it in this build.
finder due(finder found_by);

/// Checks each fault in three schedules and prints a line for it.
inline void check_planted(std::vector<planted_fault> const& faults) {
  for (planted_fault const& fault : faults) {
    finder found = finder::none;
    for (schedule const& s : all_schedules()) {
      std::string text;
      found = found | findings(fault.wrong, s, text);
      finder const in_twin = findings(fault.right, s, text);
      INFO("the twin without \"" << fault.name << "\", " << to_string(s) << ":\n" << text);
      CHECK(to_string(in_twin) == "");
    }
    std::printf("%-58s %-24s %s\n", fault.name, to_string(fault.found_by).c_str(),
                to_string(found).c_str());
    INFO("\"" << fault.name << "\" is found by: " << to_string(found));
    CHECK(to_string(found & due(fault.found_by)) == to_string(due(fault.found_by)));
  }
}

}  // namespace kvarts::kernels::simt
