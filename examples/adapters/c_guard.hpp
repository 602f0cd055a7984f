// SPDX-License-Identifier: Apache-2.0
/// @file
/// What stands between C and C++: the handle, and exceptions that become the thread's last error.
#pragma once

#include "c_api.h"
#include "host_tier.hpp"

#include <exception>
#include <string>

struct kvarts_tier {
  kvarts::adapters::host_tier tier;
};

namespace kvarts::adapters {

/// The last error of this thread.
std::string& last_error() noexcept;

/// `f()`, or `failed` and a last error.
template <class Result, class F>
Result guarded(Result failed, F const& f) noexcept {
  try {
    return f();
  } catch (std::exception const& e) {
    last_error() = e.what();
  }
  return failed;
}

inline void require(bool holds, char const* sentence) {
  if (!holds) throw error(status::unsupported, sentence);
}

/// The tier of a handle; refuses null.
inline host_tier const& tier_of(kvarts_tier const* handle) {
  require(handle != nullptr, "the tier is null");
  return handle->tier;
}

}  // namespace kvarts::adapters
