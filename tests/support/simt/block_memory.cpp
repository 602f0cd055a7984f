// SPDX-License-Identifier: Apache-2.0
#include "support/simt/block_memory.hpp"

#include "support/simt/block.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace kvarts::kernels::simt {

namespace {

constexpr std::size_t alignment = 128;
constexpr std::size_t sync_bytes = 640;  // two for the block, two for each warp
constexpr std::size_t guard_bytes = 256;
static_assert(sync_bytes >= 8 * (2 + 2 * most_warps));

}  // namespace

block_memory::block_memory(std::size_t bytes) : size_(bytes) {
  unwatched const scope;
  void* memory = nullptr;
  std::size_t const all = sync_bytes + guard_bytes + size_ + guard_bytes;
  if (posix_memalign(&memory, alignment, all) != 0) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  data_ = memory_ + sync_bytes + guard_bytes;
  std::memset(memory_, poison, all);
  forbid(data_ - guard_bytes, guard_bytes);
  forbid(data_ + size_, guard_bytes);
}

block_memory::~block_memory() {
  unwatched const scope;
  permit(data_ - guard_bytes, guard_bytes);
  permit(data_ + size_, guard_bytes);
  std::free(memory_);
}

std::string block_memory::damage() const {
  if (asan) return {};  // reported where it happened
  for (std::size_t i = 0; i < guard_bytes; ++i) {
    if (data_[size_ + i] != std::byte{poison}) {
      return "writes byte " + std::to_string(size_ + i) + " of its " + std::to_string(size_) +
             " bytes of shared memory";
    }
    if (data_[-1 - static_cast<std::ptrdiff_t>(i)] != std::byte{poison}) {
      return "writes " + std::to_string(i + 1) + " bytes in front of its shared memory";
    }
  }
  return {};
}

}  // namespace kvarts::kernels::simt
