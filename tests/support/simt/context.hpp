// SPDX-License-Identifier: Apache-2.0
/// @file
/// Stacks to switch between: that of a thread of the CPU, and fibers.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>

namespace kvarts::kernels::simt {

/// Something that runs until it switches to another; by itself, the CPU's thread.
struct context {
  boost::context::fiber rest;  // where it goes on; empty while it runs
  context* resumed_by = nullptr;
  void const* stack = nullptr;
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;
  void* watched_as = nullptr;
};

/// Stops `from`, which runs, and goes on with `to`; returns when something switches back.
void switch_context(context& from, context& to);

/// Runs `main(argument)` on a stack of its own, from the first switch to it.
class fiber : public context {
 public:
  using main_function = void (*)(void*);
  fiber(main_function main, void* argument);
  /// `main` must have returned: it does so into the context that switched to it last.
  ~fiber();
  fiber(fiber const&) = delete;
  fiber& operator=(fiber const&) = delete;
};

}  // namespace kvarts::kernels::simt
