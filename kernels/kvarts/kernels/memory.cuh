// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory that a warp moves: numbers of known and of any alignment, runs of bytes.
#pragma once

#include <kvarts/kernels/primitives.cuh>

#include <cstdint>
#include <cstring>

namespace kvarts::kernels {

/// Reads or writes a `T` that lies at a multiple of its alignment.
template <class T>
KVARTS_DEVICE T load_aligned(std::byte const* from) {
  T value;
  std::memcpy(&value, __builtin_assume_aligned(from, alignof(T)), sizeof(T));
  return value;
}
template <class T>
KVARTS_DEVICE void store_aligned(std::byte* to, T const& value) {
  std::memcpy(__builtin_assume_aligned(to, alignof(T)), &value, sizeof(T));
}

/// The same at any address, byte by byte.
template <class T>
KVARTS_DEVICE T load_bytes(std::byte const* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
KVARTS_DEVICE void store_bytes(std::byte* to, T const& value) {
  std::memcpy(to, &value, sizeof(T));
}

/// True when an address is a multiple of a power of two.
KVARTS_DEVICE bool is_aligned(std::byte const* at, int alignment) {
  return (reinterpret_cast<std::uintptr_t>(at) & static_cast<std::uintptr_t>(alignment - 1)) == 0;
}

namespace memory_detail {

template <class T>
KVARTS_DEVICE int copy_all(std::byte* to, std::byte const* from, int begin, int bytes) {
  constexpr int size = sizeof(T);
  int const end = bytes - bytes % size;
  for (int i = begin + lane_index() * size; i < end; i += warp_lanes * size) {
    store_aligned(to + i, load_aligned<T>(from + i));
  }
  return end;
}

}  // namespace memory_detail

/// The warp copies `bytes` bytes, 16 at once where both addresses allow it.
KVARTS_DEVICE void warp_copy(std::byte* to, std::byte const* from, int bytes) {
  int done = 0;
  if (is_aligned(to, 16) && is_aligned(from, 16)) {
    done = memory_detail::copy_all<words4>(to, from, done, bytes);
  }
  if (is_aligned(to, 4) && is_aligned(from, 4)) {
    done = memory_detail::copy_all<std::uint32_t>(to, from, done, bytes);
  }
  memory_detail::copy_all<std::uint8_t>(to, from, done, bytes);
}

/// The warp writes zeros.
KVARTS_DEVICE void warp_clear(std::byte* at, std::int64_t bytes) {
  for (std::int64_t i = lane_index(); i < bytes; i += warp_lanes) at[i] = std::byte{0};
}

/// Minimum of a number that each lane has, for all lanes.
KVARTS_DEVICE std::int32_t warp_minimum(std::int32_t value) {
  KVARTS_UNROLL
  for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
    std::int32_t const other = shuffle_xor(value, distance);
    value = other < value ? other : value;
  }
  return value;
}

/// Sum of a number that each lane has, for all lanes.
KVARTS_DEVICE std::int32_t warp_sum(std::int32_t value) {
  KVARTS_UNROLL
  for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
    value += shuffle_xor(value, distance);
  }
  return value;
}

}  // namespace kvarts::kernels
