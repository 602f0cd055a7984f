// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory of an exact size that ends where a page without access begins, so that one byte too far
/// is a fault in every build; the bytes before it are watched.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace kvarts::test {

class fenced_memory {
 public:
  explicit fenced_memory(std::size_t size, std::byte fill = std::byte{0}) : size_(size) {
    auto const page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::size_t const room = (size + page - 1) / page * page + page;  // a page in front at least
    mapped_ = room + page;
    void* const memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(memory);
    if (mprotect(base_ + room, page, PROT_NONE) != 0) throw std::bad_alloc();
    data_ = base_ + room - size;
    watched_ = page;
    std::memset(data_ - watched_, canary, watched_);
    std::memset(data_, static_cast<int>(fill), size);
  }
  ~fenced_memory() { munmap(base_, mapped_); }
  fenced_memory(fenced_memory const&) = delete;
  fenced_memory& operator=(fenced_memory const&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  /// True while nothing wrote in front of the memory.
  bool front_intact() const {
    for (std::size_t i = 1; i <= watched_; ++i) {
      if (data_[-static_cast<std::ptrdiff_t>(i)] != std::byte{canary}) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char canary = 0xC5;
  std::size_t size_;
  std::size_t mapped_ = 0;
  std::size_t watched_ = 0;
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace kvarts::test
