// SPDX-License-Identifier: Apache-2.0
/// @file
/// What to say when a codec, preset, layer or tensor of some name does not exist.
#pragma once

#include "tool_error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// Those of `known` that someone who typed `name` may have meant: that it begins, or that few
/// changed letters make of it; at most three, the nearest first.
std::vector<std::string> near_names(std::string_view name, std::vector<std::string> const& known);

/// `unknown codec "int8_haed"; did you mean int8_head?`, where `what` is "codec"; without near
/// names `advice` takes the place of the question.
std::string unknown_name(std::string_view what, std::string_view name,
                         std::vector<std::string> const& known, std::string_view advice);

/// The one of `all`, which have a `name` each, that is called so; throws `tool_error` (bad usage)
/// with `unknown_name`'s sentence when there is none.
template <class Range>
auto const& find_named(Range const& all, std::string_view what, std::string_view name,
                       std::string_view advice) {
  std::vector<std::string> known;
  for (auto const& one : all) {
    if (one.name == name) return one;
    known.emplace_back(one.name);
  }
  throw tool_error(unknown_name(what, name, known, advice), 2);
}

}  // namespace kvarts::tool
