// SPDX-License-Identifier: Apache-2.0
/// @file
/// All presets for tests. Compiles for half a minute: see some_schemes.hpp.
#pragma once

#include "support/some_schemes.hpp"

#include <vector>

namespace kvarts::test {

/// Every preset, and the odd ones.
inline std::vector<any_scheme> all_schemes() {
  std::vector<any_scheme> all = odd_schemes();
  for_each_preset([&](auto const& preset) { all.push_back(make_any_scheme(preset)); });
  return all;
}

}  // namespace kvarts::test
