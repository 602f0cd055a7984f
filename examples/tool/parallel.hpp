// SPDX-License-Identifier: Apache-2.0
/// @file
/// Independent pieces of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace kvarts::tool {

/// Calls `work(i)` for every i < count on `threads` threads (at least one), in any order, and
/// `done()` after each, never two at a time. The first exception stops what has not begun and is
/// thrown here.
void for_each_index(std::size_t count, int threads, std::function<void(std::size_t)> const& work,
                    std::function<void()> const& done);

}  // namespace kvarts::tool
