// SPDX-License-Identifier: Apache-2.0
/// @file
/// The one place that launches kernels: on a stream of the device, or in the emulator.
#pragma once

#include <kvarts/cuda/runtime.hpp>
#include <kvarts/kernels/primitives.cuh>

#include <cstddef>

namespace kvarts::kernels {

/// Blocks in three dimensions, threads of each, and bytes of its dynamic shared memory.
struct launch_shape {
  unsigned blocks = 1;
  unsigned blocks_y = 1;
  unsigned blocks_z = 1;
  unsigned threads = warp_lanes;
  std::size_t shared_bytes = 0;
};

/// Shared memory that a kernel may use without asking for more.
inline constexpr std::size_t default_shared_bytes = 48 * 1024;

/// Enqueues a kernel; a grid without blocks is nothing to do. Never allocates or synchronizes.
template <class... Parameters>
cudaError_t launch(void (*kernel)(Parameters...), launch_shape const& shape, cudaStream_t stream,
                   Parameters... arguments) {
  if (shape.blocks == 0 || shape.blocks_y == 0 || shape.blocks_z == 0) return cudaSuccess;
#if defined(__CUDACC__)
  if (shape.shared_bytes > default_shared_bytes) {
    auto const code = cudaFuncSetAttribute(reinterpret_cast<void const*>(kernel),
                                           cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shape.shared_bytes));
    if (code != cudaSuccess) return code;
  }
  void* pointers[] = {&arguments...};
  return cudaLaunchKernel(reinterpret_cast<void const*>(kernel),
                          dim3(shape.blocks, shape.blocks_y, shape.blocks_z), dim3(shape.threads),
                          pointers, shape.shared_bytes, stream);
#else
  static_cast<void>(stream);
  return simt::run({shape.blocks, shape.blocks_y, shape.blocks_z}, shape.threads,
                   shape.shared_bytes, [&] { kernel(arguments...); });
#endif
}

}  // namespace kvarts::kernels
