// SPDX-License-Identifier: Apache-2.0
/// @file
/// Schemes for tests: one of each kind, and some that no preset is like.
#pragma once

#include "support/any_cache.hpp"

#include <cstddef>
#include <string_view>
#include <tuple>
#include <vector>

namespace kvarts::test {

/// Schemes that no preset is like: groups of unlike lengths, awkward windows, groups by default.
inline std::vector<any_scheme> odd_schemes() {
  using namespace detail;
  constexpr auto none = key_transform::none;
  constexpr auto plain = value_transform::none;
  std::vector<any_scheme> all;
  all.push_back(make_any_scheme(scheme<codec<affine<2>, axis::token, 16>,
                                       codec<symmetric<3, range::narrow>, axis::token, 48>>{
      "tokens by 16 and 48", none, plain, {48, 5}}));
  all.push_back(make_any_scheme(scheme<codec<affine<4>, axis::token>, row_codec<midrise<3>>>{
      "dynamic groups, windows of none", none, value_transform::rotated, {0, 0}}));
  all.push_back(make_any_scheme(scheme<row_codec<int8_head>, codec<affine<3>, axis::channel, 7>>{
      "channels by 7, an odd sink", key_transform::innerq, plain, {13, 1}}));
  return all;
}

/// Place of a preset in `presets`. Visiting one by name would compile all of them.
consteval std::size_t preset_index(std::string_view name) {
  std::size_t index = 0, found = 0;
  for_each_preset([&](auto const& preset) {
    if (preset.name == name) found = index;
    ++index;
  });
  return found;
}

/// One of each kind: for tests that need no more.
inline std::vector<any_scheme> some_schemes() {
  std::vector<any_scheme> all = odd_schemes();
  all.push_back(make_any_scheme(std::get<preset_index("fp16")>(presets)));
  all.push_back(make_any_scheme(std::get<preset_index("innerq_hybrid")>(presets)));
  all.push_back(make_any_scheme(std::get<preset_index("kivi_sink")>(presets)));
  all.push_back(make_any_scheme(std::get<preset_index("turboquant")>(presets)));
  all.push_back(make_any_scheme(std::get<preset_index("turboquant_calibrated")>(presets)));
  all.push_back(make_any_scheme(std::get<preset_index("k3v2")>(presets)));
  return all;
}

}  // namespace kvarts::test
