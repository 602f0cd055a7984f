// SPDX-License-Identifier: Apache-2.0
/// @file
/// The two names of the CUDA runtime that launches use, with or without a toolkit: without one,
/// kernels run only in the tests' emulator, which needs the same declarations.
#pragma once

#if __has_include(<cuda_runtime_api.h>)

#include <cuda_runtime_api.h>

#else

struct CUstream_st;
using cudaStream_t = CUstream_st*;

/// The errors that launches return; the values are those of the CUDA runtime.
enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorNotSupported = 801,
};
using cudaError_t = cudaError;

#endif
