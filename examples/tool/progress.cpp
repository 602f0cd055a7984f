// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <unistd.h>
#include <utility>

namespace kvarts::tool {

progress::progress(std::string label, std::int64_t total)
    : label_(std::move(label)),
      total_(std::max<std::int64_t>(total, 1)),
      terminal_(::isatty(STDERR_FILENO) != 0),
      next_draw_(clock::now() + std::chrono::seconds(1)) {}

progress::~progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void progress::advance(std::int64_t units) {
  done_ = std::min(done_ + units, total_);
  if (!terminal_) return;
  auto const now = clock::now();
  if (now < next_draw_) return;
  next_draw_ = now + std::chrono::milliseconds(100);
  draw();
}

void progress::draw() {
  constexpr int width = 40;
  double const share = static_cast<double>(done_) / static_cast<double>(total_);
  auto const filled = static_cast<int>(share * width);
  fmt::print(stderr, "\r{} [{:#<{}}{:.<{}}] {:3.0f}%", label_, "", filled, "", width - filled,
             100.0 * share);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace kvarts::tool
