// SPDX-License-Identifier: Apache-2.0
// The lists of `any_cache.hpp`: every preset is instantiated here, once for all tests.
#include "support/make_any_scheme.hpp"

#include <kvarts/quantizer.hpp>
#include <kvarts/scheme.hpp>

#include <string_view>
#include <vector>

namespace kvarts::test {

namespace {

/// Schemes that no preset is like: groups of unlike lengths, awkward windows, groups by default.
std::vector<any_scheme> odd_schemes() {
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

}  // namespace

std::vector<any_scheme> const& all_schemes() {
  static std::vector<any_scheme> const all = [] {
    std::vector<any_scheme> list = odd_schemes();
    for_each_preset([&](auto const& preset) { list.push_back(make_any_scheme(preset)); });
    return list;
  }();
  return all;
}

std::vector<any_scheme> const& some_schemes() {
  static std::vector<any_scheme> const some = [] {
    std::vector<any_scheme> list = odd_schemes();
    for (std::string_view const name :
         {"fp16", "innerq_hybrid", "kivi_sink", "turboquant", "turboquant_calibrated", "k3v2"}) {
      list.push_back(scheme_named(name));
    }
    return list;
  }();
  return some;
}

}  // namespace kvarts::test
