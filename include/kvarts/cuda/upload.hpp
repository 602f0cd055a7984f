// SPDX-License-Identifier: Apache-2.0
/// @file
/// Short lists to device memory without a copy: they travel as the parameter of a launch. As in
/// `kvarts/cuda/encode.hpp`, the definition is in `kvarts/kernels/upload.cuh`.
#pragma once

#include <kvarts/cuda/runtime.hpp>

#include <cstdint>

namespace kvarts::cuda {

/// Enqueues the write of `count` numbers to device memory, `Most` a launch. `from` is host memory,
/// read before the call returns; a captured graph writes the same numbers at each replay. Never
/// allocates or synchronizes.
template <int Most = 512>
cudaError_t upload(std::int32_t* to, std::int32_t const* from, std::int64_t count,
                   cudaStream_t stream) noexcept;

}  // namespace kvarts::cuda
