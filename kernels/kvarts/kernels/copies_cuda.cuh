// SPDX-License-Identifier: Apache-2.0
/// @file
/// Copies from global to shared memory that go on while a thread does, as device instructions;
/// included through primitives.cuh.
#pragma once

#include <kvarts/kernels/primitives_cuda.cuh>

namespace kvarts::kernels {

KVARTS_DEVICE std::uint32_t shared_address(void const* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

/// Copies 16 aligned bytes from global to shared memory; they are there after `wait_copies`. Before
/// sm_80 the copy is immediate.
KVARTS_DEVICE void copy_async_16(std::byte* shared, std::byte const* global) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  *reinterpret_cast<words4*>(shared) = load_once_16(global);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(shared_address(shared)), "l"(global)
               : "memory");
#endif
}
/// Ends a group of this thread's copies.
KVARTS_DEVICE void commit_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}
/// Waits until at most `Pending` of this thread's groups are under way.
template <int Pending>
KVARTS_DEVICE void wait_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" : : "n"(Pending) : "memory");
#endif
}

/// A barrier in 8 bytes of shared memory, from sm_90 on: a phase of it ends after `arrivals`
/// arrivals, when the bytes that they expect are there. Once one thread has called this and
/// `fence_mbarrier_init`, a block barrier lets others use it.
KVARTS_DEVICE void mbarrier_init(std::uint64_t* shared, std::uint32_t arrivals) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :
               : "r"(shared_address(shared)), "r"(arrivals)
               : "memory");
#else
  __trap();  // launches refuse what needs it
#endif
}
KVARTS_DEVICE void fence_mbarrier_init() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
#else
  __trap();
#endif
}
/// Arrives, and lets the phase wait for `bytes` (a multiple of 16) more of bulk copies.
KVARTS_DEVICE void mbarrier_expect_bytes(std::uint64_t* shared, std::uint32_t bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :
               : "r"(shared_address(shared)), "r"(bytes)
               : "memory");
#else
  __trap();
#endif
}
KVARTS_DEVICE void mbarrier_arrive(std::uint64_t* shared) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
               :
               : "r"(shared_address(shared))
               : "memory");
#else
  __trap();
#endif
}
/// Waits until the phase of that parity has ended; the first phase's is 0.
KVARTS_DEVICE void mbarrier_wait(std::uint64_t* shared, std::uint32_t parity) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@!over bra again;\n"
      "}"
      :
      : "r"(shared_address(shared)), "r"(parity)
      : "memory");
#else
  __trap();
#endif
}
/// Copies `bytes` from global to shared memory, all multiples of 16; a phase of `barrier` that
/// expects them ends when they are there.
KVARTS_DEVICE void bulk_copy(std::byte* shared, std::byte const* global, std::uint32_t bytes,
                             std::uint64_t* barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :
      : "r"(shared_address(shared)), "l"(global), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
#else
  __trap();
#endif
}

/// Whether bulk copies are there, and better than 16 bytes at a time: from sm_90 on.
KVARTS_DEVICE constexpr bool uses_bulk_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  return true;
#else
  return false;
#endif
}

}  // namespace kvarts::kernels
