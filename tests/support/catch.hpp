// SPDX-License-Identifier: Apache-2.0
/// @file
/// Catch2, version 2 (Debian 12) or 3, under the names of version 3.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>

#include <string>

namespace Catch {

using Detail::Approx;

namespace Matchers {

inline StdString::ContainsMatcher ContainsSubstring(std::string const& part) {
  return Contains(part);
}

}  // namespace Matchers

}  // namespace Catch
#endif
