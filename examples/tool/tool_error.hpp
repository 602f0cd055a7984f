// SPDX-License-Identifier: Apache-2.0
/// @file
/// How the `kvarts` program reports what it cannot do.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace kvarts::tool {

/// One sentence for stderr and the program's exit code: 1 for bad data, 2 for bad usage.
class tool_error : public std::runtime_error {
 public:
  explicit tool_error(std::string const& sentence, int exit_code = 1)
      : std::runtime_error(sentence), exit_code_(exit_code) {}
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

/// `text` from a file in double quotes for a message: control characters escaped, at most 80 bytes.
std::string in_quotes(std::string_view text);

}  // namespace kvarts::tool
