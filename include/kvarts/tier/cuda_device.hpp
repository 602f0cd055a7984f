// SPDX-License-Identifier: Apache-2.0
/// @file
/// The CUDA runtime as a device of the tier. Empty without a toolkit.
#pragma once

#include <kvarts/config.hpp>

#if __has_include(<cuda_runtime_api.h>)

#include <kvarts/cuda/upload.hpp>
#include <kvarts/tier/cuda_coders.hpp>
#include <kvarts/tier/layers.hpp>
#include <kvarts/tier/pinned_arena.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

namespace kvarts::tier {

/// Streams, events, copies and launches of the current CUDA device. `coders`, from
/// `cuda_coders_of`, must outlive it.
class cuda_device {
 public:
  using stream = cudaStream_t;
  using event = cudaEvent_t;

  explicit cuda_device(std::span<cuda_coder const> coders) noexcept : coders_(coders) {}

  /// The tier's memory is an arena that was pinned in pieces: copies are cut where pieces end.
  void use(pinned_arena const& arena) noexcept {
    arena_ = {arena.data(), arena.data() + arena.bytes()};
    piece_bytes_ = arena.piece_bytes();
  }

  /// The first error since the last call, which it forgets.
  cudaError_t take_error() noexcept { return std::exchange(error_, cudaSuccess); }

  bool make_event(event& e) noexcept {
    return ok(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  }
  void destroy_event(event e) noexcept { ok(cudaEventDestroy(e)); }
  bool record(event e, stream s) noexcept { return ok(cudaEventRecord(e, s)); }
  bool wait(stream s, event e) noexcept { return ok(cudaStreamWaitEvent(s, e, 0)); }

  bool copy(std::byte* to, std::byte const* from, std::int64_t bytes, stream s) noexcept {
    while (bytes > 0) {
      std::int64_t const n = std::min({bytes, to_piece_end(to), to_piece_end(from)});
      if (!ok(cudaMemcpyAsync(to, from, static_cast<std::size_t>(n), cudaMemcpyDefault, s))) {
        return false;
      }
      to += n;
      from += n;
      bytes -= n;
    }
    return true;
  }
  bool upload(std::int32_t* to, std::int32_t const* from, std::int64_t count, stream s) noexcept {
    return ok(cuda::upload(to, from, count, s));
  }

  bool encode(encode_launch const& l, stream s) noexcept { return ok(find(l.codec)->encode(l, s)); }
  bool decode(decode_launch const& l, stream s) noexcept { return ok(find(l.codec)->decode(l, s)); }
  problem explain(encode_launch const& l) const noexcept {
    cuda_coder const* const c = find(l.codec);
    return c == nullptr ? no_coder(l.codec) : c->explain_encode(l);
  }
  problem explain(decode_launch const& l) const noexcept {
    cuda_coder const* const c = find(l.codec);
    return c == nullptr ? no_coder(l.codec) : c->explain_decode(l);
  }

  /// Null too where the pieces of an arena are not neighbours for the device as they are for the
  /// host.
  std::byte* mapped(std::byte const* host) noexcept {
    std::byte* const first = mapped_byte(host);
    if (first == nullptr || !in_arena(host)) return first;
    for (std::byte const* at = host + to_piece_end(host); at < arena_.end; at += piece_bytes_) {
      if (mapped_byte(at) != first + (at - host)) return nullptr;
    }
    return first;
  }
  /// What cannot be asked counts as a capture.
  bool capturing(stream s) noexcept {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    ok(cudaStreamIsCapturing(s, &status));
    return status != cudaStreamCaptureStatusNone;
  }

 private:
  struct byte_range {
    std::byte const* begin = nullptr;
    std::byte const* end = nullptr;
  };

  bool ok(cudaError_t code) noexcept {
    if (error_ == cudaSuccess) error_ = code;
    return code == cudaSuccess;
  }

  bool in_arena(std::byte const* at) const noexcept {
    return std::less_equal<>{}(arena_.begin, at) && std::less<>{}(at, arena_.end);
  }
  std::int64_t to_piece_end(std::byte const* at) const noexcept {
    if (!in_arena(at)) return std::int64_t{1} << 60;
    return piece_bytes_ - (at - arena_.begin) % piece_bytes_;
  }

  static std::byte* mapped_byte(std::byte const* host) noexcept {
    void* device = nullptr;
    if (cudaHostGetDevicePointer(&device, const_cast<std::byte*>(host), 0) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());  // memory that is not mapped is no failure
      return nullptr;
    }
    return static_cast<std::byte*>(device);
  }

  cuda_coder const* find(codec_info const& codec) const noexcept {
    for (cuda_coder const& c : coders_) {
      if (detail::same_codec(c.info, codec)) return &c;
    }
    return nullptr;
  }
  problem no_coder(codec_info const& codec) const noexcept {
    return {status::unsupported, "a codec of {} bits is not among the {} coders", codec.bits,
            static_cast<std::int64_t>(coders_.size())};
  }

  std::span<cuda_coder const> coders_;
  byte_range arena_{};
  std::int64_t piece_bytes_ = 0;
  cudaError_t error_ = cudaSuccess;
};

/// The options, with functions that pin pieces for CUDA: mapped, for all devices.
inline arena_options pinned_for_cuda(arena_options options = {}) noexcept {
  options.pin = [](void*, std::byte* data, std::int64_t bytes) {
    return cudaHostRegister(data, static_cast<std::size_t>(bytes),
                            cudaHostRegisterMapped | cudaHostRegisterPortable) == cudaSuccess;
  };
  options.unpin = [](void*, std::byte* data) { static_cast<void>(cudaHostUnregister(data)); };
  return options;
}

}  // namespace kvarts::tier

#endif
