// SPDX-License-Identifier: Apache-2.0
/// @file
/// Numbers that miss their bounds: counted, and the first told in words.
#pragma once

#include "support/catch.hpp"

#include <cmath>
#include <sstream>
#include <string>

namespace kvarts::test {

/// Number of results that miss their bound, and the first of them in words.
struct misses {
  int count = 0;
  std::string first;

  void compare(double found, double expected, double bound, std::string const& where) {
    if (std::fabs(found - expected) <= bound) return;
    if (count++ == 0) {
      std::ostringstream text;
      text << where << ": " << found << " instead of " << expected << ", bound " << bound;
      first = text.str();
    }
  }
  void require_none() const {
    INFO(first);
    REQUIRE(count == 0);
  }
};

}  // namespace kvarts::test
