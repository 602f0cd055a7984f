// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the engine tells sanitizers. It is itself compiled without them (CMake says which one
/// watches the kernels), so that only kernels are judged: for ThreadSanitizer each GPU thread is a
/// thread, ordered by barriers, fences and nothing else.
#pragma once

#include <cstddef>

#if defined(KVARTS_SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(KVARTS_SIMT_TSAN)
#include <atomic>
#include <iterator>
#include <sanitizer/tsan_interface.h>

extern "C" {  // exported by the runtime, declared in no public header
void __tsan_read_range(void* address, unsigned long bytes);
void __tsan_write_range(void* address, unsigned long bytes);
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
}
#endif

namespace kvarts::kernels::simt {

#if defined(KVARTS_SIMT_ASAN)
inline constexpr bool asan = true;
inline void forbid(void const* at, std::size_t bytes) { __asan_poison_memory_region(at, bytes); }
inline void permit(void const* at, std::size_t bytes) { __asan_unpoison_memory_region(at, bytes); }
inline void start_switch(void** fake_stack, void const* stack, std::size_t bytes) {
  __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
}
inline void finish_switch(void* fake_stack, void const** old_stack, std::size_t* old_bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, old_stack, old_bytes);
}
#else
inline constexpr bool asan = false;
inline void forbid(void const*, std::size_t) {}
inline void permit(void const*, std::size_t) {}
inline void start_switch(void**, void const*, std::size_t) {}
inline void finish_switch(void*, void const**, std::size_t*) {}
#endif

#if defined(KVARTS_SIMT_TSAN)
inline constexpr bool tsan = true;
inline void release(void* object) { __tsan_release(object); }
inline void acquire(void* object) { __tsan_acquire(object); }
inline void note_read(void const* at, std::size_t bytes) {
  __tsan_read_range(const_cast<void*>(at), bytes);
}
inline void note_write(void* at, std::size_t bytes) { __tsan_write_range(at, bytes); }
inline void* running_fiber() { return __tsan_get_current_fiber(); }
inline void* create_fiber() { return __tsan_create_fiber(0); }
/// Destroys one that ended earlier: a race with a thread is found while the runtime remembers it.
inline void destroy_fiber(void* fiber) {
  static std::atomic<void*> ended[1024];
  static std::atomic<std::size_t> count{0};
  void* const forgotten = ended[count++ % std::size(ended)].exchange(fiber);
  if (forgotten != nullptr) __tsan_destroy_fiber(forgotten);
}
inline void switch_fiber(void* fiber) {
  __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync);
}
/// Memory that is allocated and freed meanwhile has no history.
struct unwatched {
  unwatched() { __tsan_ignore_thread_begin(); }
  ~unwatched() { __tsan_ignore_thread_end(); }
};
#else
inline constexpr bool tsan = false;
inline void release(void*) {}
inline void acquire(void*) {}
inline void note_read(void const*, std::size_t) {}
inline void note_write(void*, std::size_t) {}
inline void* running_fiber() { return nullptr; }
inline void* create_fiber() { return nullptr; }
inline void destroy_fiber(void*) {}
inline void switch_fiber(void*) {}
struct unwatched {
  unwatched() {}
};
#endif

}  // namespace kvarts::kernels::simt
