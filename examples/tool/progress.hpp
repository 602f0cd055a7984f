// SPDX-License-Identifier: Apache-2.0
/// @file
/// A progress bar for work that takes over a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace kvarts::tool {

/// Draws one line on stderr while work goes on, if that is a terminal, and removes it at the end.
/// Work of less than a second draws nothing.
class progress {
 public:
  /// `total` is in the caller's units of work; `label` says what is done, "encoding" for instance.
  progress(std::string label, std::int64_t total);
  progress(progress const&) = delete;
  progress& operator=(progress const&) = delete;
  ~progress();

  /// Some more units are done.
  void advance(std::int64_t units = 1);

 private:
  using clock = std::chrono::steady_clock;

  void draw();

  std::string label_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  bool terminal_;
  bool drawn_ = false;
  clock::time_point next_draw_;
};

}  // namespace kvarts::tool
