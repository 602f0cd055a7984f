// SPDX-License-Identifier: Apache-2.0
/// @file
/// The shared memory of one block: of exactly the size that was asked for, poisoned, guarded.
#pragma once

#include <cstddef>
#include <string>

namespace kvarts::kernels::simt {

class block_memory {
 public:
  /// What shared memory holds at first: NaNs and indices out of any range.
  static constexpr unsigned char poison = 0xFF;

  /// Memory without a history, also for ThreadSanitizer, which remembers who used what where.
  explicit block_memory(std::size_t bytes);
  ~block_memory();
  block_memory(block_memory const&) = delete;
  block_memory& operator=(block_memory const&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// An address that stands for the n-th barrier of the block.
  void* sync_object(int n) const { return memory_ + 8 * n; }
  /// What was written outside, as a part of a sentence; else empty.
  std::string damage() const;

 private:
  std::size_t size_;
  std::byte* memory_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace kvarts::kernels::simt
