// SPDX-License-Identifier: Apache-2.0
/// @file
/// Version and compiler requirements. CMake parses the version from the three lines below.
#pragma once

#define KVARTS_VERSION_MAJOR 0
#define KVARTS_VERSION_MINOR 1
#define KVARTS_VERSION_PATCH 0

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "kvarts needs C++20: compile with -std=c++20 or later"
#endif

#if defined(__clang__)
#if __clang_major__ < 14
#error "kvarts needs clang 14 or later (16 is tested)"
#endif
#elif defined(__GNUC__)
#if __GNUC__ < 12
#error "kvarts needs GCC 12 or later"
#endif
#endif

// Codes are defined by IEEE float32 operations, each rounded by itself. Fast-math replaces
// divisions by reciprocals and reorders sums, which changes stored bytes; `numerics_ok()` checks at
// run time for compilers that define none of these.
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "kvarts stores the same bytes everywhere: compile without -ffast-math (and its parts)"
#endif

/// Marks functions that CUDA kernels call too.
#if defined(__CUDACC__)
#define KVARTS_HOST_DEVICE __host__ __device__
#else
#define KVARTS_HOST_DEVICE
#endif
