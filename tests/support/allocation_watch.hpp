// SPDX-License-Identifier: Apache-2.0
/// @file
/// Replaces the global operator new to see what code allocates. Include it in one source of an
/// executable only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace kvarts::test {

inline std::atomic<std::size_t> allocated_bytes{0};
inline std::atomic<std::size_t> largest_allocation{0};

/// Bytes that were asked for since construction.
class allocation_watch {
 public:
  allocation_watch() {
    allocated_bytes = 0;
    largest_allocation = 0;
  }
  std::size_t bytes() const { return allocated_bytes; }
  std::size_t largest() const { return largest_allocation; }
};

inline void* watched_malloc(std::size_t size) noexcept {
  allocated_bytes += size;
  if (size > largest_allocation) largest_allocation = size;
  return std::malloc(size == 0 ? 1 : size);
}

inline void* watched_new(std::size_t size) {
  if (void* const memory = watched_malloc(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace kvarts::test

// Not inlined: GCC would compare a `free` inlined here with an `operator new` that it did not
// inline.
[[gnu::noinline]] void* operator new(std::size_t size) { return kvarts::test::watched_new(size); }
[[gnu::noinline]] void* operator new[](std::size_t size) { return kvarts::test::watched_new(size); }
[[gnu::noinline]] void* operator new(std::size_t size, std::nothrow_t const&) noexcept {
  return kvarts::test::watched_malloc(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size, std::nothrow_t const&) noexcept {
  return kvarts::test::watched_malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
