// SPDX-License-Identifier: Apache-2.0
/// @file
/// Definition of the launch in `kvarts/cuda/upload.hpp`.
#pragma once

#include <kvarts/cuda/upload.hpp>
#include <kvarts/kernels/launch.cuh>

#include <algorithm>
#include <cstdint>

namespace kvarts::kernels {

template <int Most>
struct number_list {
  std::int32_t numbers[Most];
};

inline constexpr int upload_threads = 128;

template <int Most>
KVARTS_KERNEL(upload_threads, 1)
upload_kernel(number_list<Most> from, std::int32_t* to, int count) {
  for (int i = thread_index(); i < count; i += block_threads()) to[i] = from.numbers[i];
}

}  // namespace kvarts::kernels

namespace kvarts::cuda {

template <int Most>
cudaError_t upload(std::int32_t* to, std::int32_t const* from, std::int64_t count,
                   cudaStream_t stream) noexcept {
  kernels::number_list<Most> some{};
  for (std::int64_t i = 0; i < count; i += Most) {
    auto const n = static_cast<int>(std::min<std::int64_t>(count - i, Most));
    std::copy_n(from + i, n, some.numbers);
    auto const code =
        kernels::launch(kernels::upload_kernel<Most>, {.threads = kernels::upload_threads}, stream,
                        some, to + i, n);
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace kvarts::cuda
