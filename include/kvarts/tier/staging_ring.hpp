// SPDX-License-Identifier: Apache-2.0
/// @file
/// Staging on the device: a ring of a few slices of one size, which never grows. Transfers go
/// through it in chunks, one ring a direction.
#pragma once

#include <kvarts/bits.hpp>
#include <kvarts/tier/device.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvarts::tier {

/// Memory for a ring, and who gave it: `bytes` may be less than was asked for.
struct staging_memory {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

/// Asks `allocate(bytes)`, which gives null where there is not so much, for `slices` slices of
/// `slice_bytes`, then of half of that, and so on down to `least_bytes`. The memory stays the
/// caller's to free.
template <class Allocate>
staging_memory allocate_staging(Allocate const& allocate, int slices, std::int64_t slice_bytes,
                                std::int64_t least_bytes) {
  for (std::int64_t each = slice_bytes; each >= least_bytes && each > 0; each /= 2) {
    if (std::byte* const data = allocate(slices * each)) return {data, slices * each};
  }
  return {};
}

/// One slice. `filled` marks its last filling, `last_use` what read it last.
template <device D>
struct staging_slice {
  std::byte* data = nullptr;
  typename D::event filled{};
  typename D::event last_use{};
};

/// A ring over the caller's device memory. Calls come from one thread at a time; the
/// device outlives the ring, and the ring the work that is enqueued.
template <device D>
class staging_ring {
 public:
  static constexpr int max_slices = 16;
  static constexpr std::int64_t alignment = 256;  ///< of slices within the memory

  /// Divides the memory into `slices` slices, or fewer where it, or the device's events, do not
  /// suffice: `slices()` says how many there are.
  staging_ring(D& d, staging_memory memory, int slices) : device_(&d) {
    int const wanted = slices < 1 ? 0 : (slices > max_slices ? max_slices : slices);
    if (wanted == 0 || memory.data == nullptr) return;
    slice_bytes_ = memory.bytes / wanted / alignment * alignment;
    if (slice_bytes_ == 0) return;
    for (; count_ < wanted; ++count_) {
      staging_slice<D>& s = slices_[static_cast<std::size_t>(count_)];
      if (!d.make_event(s.filled)) return;
      if (!d.make_event(s.last_use)) {
        d.destroy_event(s.filled);
        return;
      }
      s.data = memory.data + count_ * slice_bytes_;
    }
  }
  staging_ring(staging_ring const&) = delete;
  staging_ring& operator=(staging_ring const&) = delete;
  ~staging_ring() {
    for (int i = 0; i < count_; ++i) {
      device_->destroy_event(slice(i).filled);
      device_->destroy_event(slice(i).last_use);
    }
  }

  int slices() const noexcept { return count_; }
  std::int64_t slice_bytes() const noexcept { return slice_bytes_; }
  staging_slice<D> const& slice(int i) const noexcept {
    return slices_[static_cast<std::size_t>(i)];
  }

  /// The next slice, for what `stream` fills it with: the stream waits for its last user, the host
  /// never does.
  staging_slice<D> const& acquire(enqueuer<D>& q, typename D::stream stream) {
    staging_slice<D> const& s = slice(next_);
    next_ = (next_ + 1) % count_;
    q.wait(stream, s.last_use);
    return s;
  }

 private:
  D* device_;
  std::array<staging_slice<D>, max_slices> slices_{};
  int count_ = 0;
  int next_ = 0;
  std::int64_t slice_bytes_ = 0;
};

}  // namespace kvarts::tier
