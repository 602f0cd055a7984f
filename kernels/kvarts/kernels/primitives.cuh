// SPDX-License-Identifier: Apache-2.0
/// @file
/// What kernels are written in: thread coordinates, barriers, warp collectives, tensor-core
/// products, copies. Compiled by nvcc these are instructions of the device; compiled by any other
/// compiler, calls of an emulator that runs the same kernels on the CPU.
///
/// Blocks are one-dimensional, warps have 32 lanes, all lanes take part in a collective. Kernels
/// have dynamic shared memory only. `mma_*` is m16n8k16: lane 4 g + r holds of A (row-major, 16 x
/// 16) rows g and g + 8, columns 2r, 2r + 1, 2r + 8, 2r + 9 as a[0] = (g; 2r, 2r+1), a[1] = (g + 8;
/// 2r, 2r+1), a[2] = (g; 2r+8, 2r+9), a[3] = (g + 8; 2r+8, 2r+9); of B (16 x 8) column g as b[0] =
/// rows 2r, 2r+1 and b[1] = rows 2r+8, 2r+9; and of the sums (16 x 8) d[0], d[1] = (g; 2r, 2r+1),
/// d[2], d[3] = (g + 8; 2r, 2r+1). The lower half of a register is the lower index.
#pragma once

#include <kvarts/config.hpp>

#include <cstddef>
#include <cstdint>

namespace kvarts::kernels {

inline constexpr int warp_lanes = 32;

/// Sixteen bytes that move with one instruction.
struct alignas(16) words4 {
  std::uint32_t w[4];
};

/// Two floats, as unpacked from one register.
struct float_pair {
  float low;
  float high;
};

}  // namespace kvarts::kernels

#if defined(__CUDACC__)
#include <kvarts/kernels/copies_cuda.cuh>
#include <kvarts/kernels/primitives_cuda.cuh>
#else
#include <kvarts/kernels/primitives_simt.hpp>
#endif
