// SPDX-License-Identifier: Apache-2.0
/// @file
/// The primitives as device instructions; included through primitives.cuh. The only header that
/// needs CUDA's.
#pragma once

#include <kvarts/kernels/primitives.cuh>

#include <cuda_runtime.h>

#if defined(__CUDA_FTZ) || (defined(__CUDA_PREC_DIV) && !__CUDA_PREC_DIV)
#error "kvarts stores the same bytes everywhere: compile without --use_fast_math (and its parts)"
#endif

#define KVARTS_DEVICE __device__ __forceinline__
#define KVARTS_KERNEL(threads, blocks) __global__ void __launch_bounds__(threads, blocks)
#define KVARTS_NO_UNROLL _Pragma("unroll 1")
#define KVARTS_UNROLL _Pragma("unroll")

namespace kvarts::kernels {

KVARTS_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
KVARTS_DEVICE int block_threads() { return static_cast<int>(blockDim.x); }
KVARTS_DEVICE int block_index() { return static_cast<int>(blockIdx.x); }
KVARTS_DEVICE int block_index_y() { return static_cast<int>(blockIdx.y); }
KVARTS_DEVICE int block_index_z() { return static_cast<int>(blockIdx.z); }
KVARTS_DEVICE int grid_blocks() { return static_cast<int>(gridDim.x); }
KVARTS_DEVICE int lane_index() { return thread_index() % warp_lanes; }
KVARTS_DEVICE int warp_index() { return thread_index() / warp_lanes; }

/// The same value, of which the compiler knows nothing: what is computed from it is computed here,
/// not far ahead, where it would hold registers.
template <class T>
KVARTS_DEVICE T kept_here(T value) {
  asm volatile("" : "+r"(value));
  return value;
}

KVARTS_DEVICE void block_barrier() { __syncthreads(); }
KVARTS_DEVICE void warp_barrier() { __syncwarp(); }

/// The value of another lane; `T` has 4 or 8 bytes.
template <class T>
KVARTS_DEVICE T shuffle(T value, int lane) {
  return __shfl_sync(0xFFFFFFFFu, value, lane);
}
template <class T>
KVARTS_DEVICE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, value, mask);
}
KVARTS_DEVICE bool any_lane(bool value) { return __any_sync(0xFFFFFFFFu, value) != 0; }
KVARTS_DEVICE std::uint32_t ballot(bool value) { return __ballot_sync(0xFFFFFFFFu, value); }

/// The block's dynamic shared memory, 128-byte aligned.
KVARTS_DEVICE std::byte* shared_memory() {
  extern __shared__ __align__(128) unsigned char kvarts_shared[];
  return reinterpret_cast<std::byte*>(kvarts_shared);
}

/// Global memory that is read once: 16, 8 or 4 aligned bytes that leave L1 to others.
KVARTS_DEVICE words4 load_once_16(std::byte const* from) {
  words4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
               : "l"(from));
  return v;
}
KVARTS_DEVICE void load_once_8(std::byte const* from, std::uint32_t& low, std::uint32_t& high) {
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
               : "=r"(low), "=r"(high)
               : "l"(from));
}
KVARTS_DEVICE std::uint32_t load_once_4(std::byte const* from) {
  std::uint32_t v;
  asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(from));
  return v;
}

/// d = a b + c for halfs, sums in float32.
KVARTS_DEVICE void mma_f16(float (&d)[4], std::uint32_t const (&a)[4], std::uint32_t const (&b)[2],
                           float const (&c)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%7,%8,%9,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
#endif
}
/// d += a b.
KVARTS_DEVICE void mma_f16(float (&d)[4], std::uint32_t const (&a)[4],
                           std::uint32_t const (&b)[2]) {
  float const c[4] = {d[0], d[1], d[2], d[3]};
  mma_f16(d, a, b, c);
}

/// Transposes an 8 x 8 matrix of 16-bit values: lane 4 g + r has row g, columns 2r, 2r + 1.
KVARTS_DEVICE std::uint32_t transpose_8x8(std::uint32_t v) {
  std::uint32_t t;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(v));
  return t;
}

/// d += a b for bfloat16s; from sm_80 on.
KVARTS_DEVICE void mma_bf16(float (&d)[4], std::uint32_t const (&a)[4],
                            std::uint32_t const (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __trap();  // `explain_device` refuses bfloat16 there
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/// Two floats as halfs of one register, rounded to nearest even.
KVARTS_DEVICE std::uint32_t pack_half2(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  std::uint32_t v;
  asm("{.reg .f16 a, b; cvt.rn.f16.f32 a, %1; cvt.rn.f16.f32 b, %2; mov.b32 %0, {a, b};}"
      : "=r"(v)
      : "f"(low), "f"(high));
  return v;
#else
  std::uint32_t v;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
  return v;
#endif
}
KVARTS_DEVICE float_pair unpack_half2(std::uint32_t v) {
  float_pair p;
  asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
      : "=f"(p.low), "=f"(p.high)
      : "r"(v));
  return p;
}
/// Two products of halfs, each rounded to nearest even.
KVARTS_DEVICE std::uint32_t mul_half2(std::uint32_t a, std::uint32_t b) {
  std::uint32_t v;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
  return v;
}
KVARTS_DEVICE float half_to_float(std::uint16_t bits) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
  return v;
}

/// Bytes of (low, high) by four selectors of 4 bits, 0..7.
KVARTS_DEVICE std::uint32_t byte_permute(std::uint32_t low, std::uint32_t high,
                                         std::uint32_t selectors) {
  return __byte_perm(low, high, selectors);
}

KVARTS_DEVICE float magnitude(float x) { return fabsf(x); }
/// The larger of two numbers.
KVARTS_DEVICE float larger(float a, float b) { return fmaxf(a, b); }
/// a b + c, rounded once.
KVARTS_DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
/// 2^x, 1 / x and log2(x) to about 2 ulp; results below the normal range are 0.
KVARTS_DEVICE float exp2_approx(float x) {
  float v;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x));
  return v;
}
KVARTS_DEVICE float reciprocal_approx(float x) {
  float v;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x));
  return v;
}
KVARTS_DEVICE float log2_approx(float x) {
  float v;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x));
  return v;
}

/// Adds to global memory, relaxed, and returns what was there.
KVARTS_DEVICE std::uint32_t atomic_add(std::uint32_t* at, std::uint32_t n) {
  return atomicAdd(at, n);
}
KVARTS_DEVICE unsigned long long atomic_add(unsigned long long* at, unsigned long long n) {
  return atomicAdd(at, n);
}
/// Orders this thread's earlier accesses to global memory before its later ones, for all threads.
KVARTS_DEVICE void thread_fence() { __threadfence(); }

}  // namespace kvarts::kernels
