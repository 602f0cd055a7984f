// SPDX-License-Identifier: Apache-2.0
#include "tool_error.hpp"

#include <fmt/format.h>

namespace kvarts::tool {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  if (text.size() <= longest) return fmt::format("{:?}", text);
  return fmt::format("{:?}...", text.substr(0, longest));
}

}  // namespace kvarts::tool
