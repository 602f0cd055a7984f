// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory for a tier, as an option: its pages are touched first by threads that may be bound to
/// NUMA nodes, and it is pinned in pieces. For POSIX systems; a tier takes any other memory too.
#pragma once

#include <kvarts/bits.hpp>
#include <kvarts/status.hpp>
#include <kvarts/tier/threads.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <utility>

namespace kvarts::tier {

/// How an arena gets its memory. Functions get `context`.
struct arena_options {
  std::int64_t piece_bytes = std::int64_t{1} << 30;  ///< pinned at once; whole pages of 4 KiB
  int threads = 1;                                   ///< each touches an even part, in order
  void* context = nullptr;
  /// Called on thread i before it touches its part: binds it to a node, for instance.
  void (*on_thread)(void* context, int thread) = nullptr;
  /// Pins a piece for a device, as cudaHostRegister does; null: nothing is pinned.
  bool (*pin)(void* context, std::byte* data, std::int64_t bytes) = nullptr;
  void (*unpin)(void* context, std::byte* data) = nullptr;
};

/// Owns its memory, zeros at first; pieces are unpinned with it. Copies of a device may not cross
/// the borders of pieces: `piece_bytes()` tells where they are.
class pinned_arena {
 public:
  static constexpr std::int64_t page_bytes = 4096;

  pinned_arena() noexcept = default;
  pinned_arena(pinned_arena&& other) noexcept { swap(other); }
  pinned_arena& operator=(pinned_arena&& other) noexcept {
    swap(other);
    return *this;
  }
  ~pinned_arena() {
    unpin();
    if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
  }

  /// Takes `bytes` bytes from the system, touches and pins them. On a problem the arena is empty
  /// and nothing stays pinned.
  problem allocate(std::int64_t bytes, arena_options const& options = {}) noexcept {
    if (bytes < 1 || bytes > std::int64_t{1} << 60) {
      return {status::bad_tokens, "an arena has 1 to 2^60 bytes, not {}", bytes};
    }
    if (options.piece_bytes < page_bytes || options.piece_bytes % page_bytes != 0) {
      return {status::bad_alignment, "pieces of {} bytes are not whole pages of {} bytes",
              options.piece_bytes, page_bytes};
    }
    if (auto const p = check_threads(options.threads)) return p;
    pinned_arena made;
    void* const memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return {status::no_pages, "the system has no memory for an arena of {} bytes", bytes};
    }
    made.data_ = static_cast<std::byte*>(memory);
    made.bytes_ = bytes;
    made.options_ = options;
    made.touch();
    if (auto const p = made.pin()) return p;
    swap(made);
    return {};
  }

  std::byte* data() const noexcept { return data_; }
  std::int64_t bytes() const noexcept { return bytes_; }
  std::int64_t piece_bytes() const noexcept { return options_.piece_bytes; }

 private:
  void swap(pinned_arena& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(pinned_, other.pinned_);
    std::swap(options_, other.options_);
  }

  void touch() const noexcept {
    std::int64_t const pages = ceil_div(bytes_, page_bytes);
    int const parts = static_cast<int>(std::min<std::int64_t>(pages, options_.threads));
    detail::for_each_part(parts, [&](int i) {
      if (options_.on_thread != nullptr) options_.on_thread(options_.context, i);
      std::int64_t const end = detail::part_begin(pages, parts, i + 1);
      for (std::int64_t p = detail::part_begin(pages, parts, i); p < end; ++p) {
        static_cast<std::byte volatile*>(data_)[p * page_bytes] = std::byte{0};
      }
    });
  }

  problem pin() noexcept {
    while (options_.pin != nullptr && pinned_ < bytes_) {
      std::int64_t const n = std::min(options_.piece_bytes, bytes_ - pinned_);
      if (!options_.pin(options_.context, data_ + pinned_, n)) {
        return {status::device_failed, "{} bytes from byte {} of an arena on could not be pinned",
                n, pinned_};
      }
      pinned_ += n;
    }
    return {};
  }

  void unpin() noexcept {
    for (std::int64_t at = 0; at < pinned_; at += options_.piece_bytes) {
      if (options_.unpin != nullptr) options_.unpin(options_.context, data_ + at);
    }
    pinned_ = 0;
  }

  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t pinned_ = 0;  ///< of the first bytes
  arena_options options_{};
};

}  // namespace kvarts::tier
