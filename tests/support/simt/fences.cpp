// SPDX-License-Identifier: Apache-2.0
// What orders memory between blocks, for ThreadSanitizer: a fence before a relaxed atomic operation
// and one after another of the same place, as in C++. Either alone orders nothing.
#include "support/simt/block.hpp"

#include <iterator>

namespace kvarts::kernels::simt {

void thread_fence() {
  gpu_thread& t = current_block().running();
  t.has_fenced = true;
  for (void* const at : t.atomics) {
    if (at != nullptr) acquire(at);
  }
}

void before_atomic(void* at) {
  if (current_block().running().has_fenced) release(at);
}

void after_atomic(void* at) {
  gpu_thread& t = current_block().running();
  t.atomics[t.next_atomic++ % std::size(t.atomics)] = at;
}

}  // namespace kvarts::kernels::simt
