// SPDX-License-Identifier: Apache-2.0
/// @file
/// The primitives on the CPU; included through primitives.cuh. What threads do together is the
/// work of an engine that tests link (tests/support/simt); what a thread does alone is here.
/// Barriers and collectives note where they are called, so that threads that meet at different
/// places are found and named.
#pragma once

#include <kvarts/cuda/runtime.hpp>
#include <kvarts/float16.hpp>
#include <kvarts/kernels/primitives.cuh>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <source_location>
#include <type_traits>

#define KVARTS_DEVICE inline
#define KVARTS_KERNEL(threads, blocks) inline void
#define KVARTS_NO_UNROLL
#define KVARTS_UNROLL

namespace kvarts::kernels {

namespace simt {

struct grid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

/// Runs `body` as every thread of every block. Throws what a kernel did wrong, in one sentence.
cudaError_t run(grid blocks, unsigned threads, std::size_t shared_bytes,
                std::function<void()> const& body);

/// The thread that runs on this thread of the CPU.
struct place {
  int thread = 0;
  int threads = 0;
  int block = 0;
  int block_y = 0;
  int block_z = 0;
  int blocks = 0;
  std::byte* shared = nullptr;
  std::size_t shared_bytes = 0;
};
extern constinit thread_local place here;

enum class lane_source { index, exclusive_or };
enum class product_of { halfs, bfloat16s };

void block_barrier(std::source_location at);
void warp_barrier(std::source_location at);
std::uint64_t shuffle(std::uint64_t value, lane_source source, int operand,
                      std::source_location at);
std::uint32_t ballot(bool value, std::source_location at);
void multiply(float* d, std::uint32_t const* a, std::uint32_t const* b, product_of type,
              std::source_location at);
void thread_fence();
void before_atomic(void* at);
void after_atomic(void* at);

void copy_async(std::byte* shared, words4 const& data);
void commit_copies();
void wait_copies(int pending);
void bulk_copy(std::byte* shared, std::byte const* global, std::uint32_t bytes,
               std::uint64_t* barrier);
void mbarrier_init(std::uint64_t* barrier, std::uint32_t arrivals);
void mbarrier_arrive(std::uint64_t* barrier, std::uint32_t expected_bytes);
void mbarrier_wait(std::uint64_t* barrier, std::uint32_t parity, std::source_location at);

/// What `uses_bulk_copies` answers: tests run kernels with both kinds of copies.
inline bool bulk_copies = false;

/// Throws `what` with the block and thread in front.
[[noreturn]] void fault(char const* what);

inline void check_global(std::byte const* from, std::size_t bytes) {
  auto const address = reinterpret_cast<std::uintptr_t>(from);
  if (address % bytes != 0) fault("loads 16, 8 or 4 bytes from a misaligned address");
  if (address - reinterpret_cast<std::uintptr_t>(here.shared) < here.shared_bytes) {
    fault("loads from shared memory as if it were global");
  }
}

template <class T>
T shuffle(T value, lane_source source, int operand, std::source_location at) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shuffle(bits, source, operand, at);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
T atomic_add(T* at, T n) {
  before_atomic(at);
  T const old = std::atomic_ref(*at).fetch_add(n, std::memory_order_relaxed);
  after_atomic(at);
  return old;
}

}  // namespace simt

KVARTS_DEVICE int thread_index() { return simt::here.thread; }
KVARTS_DEVICE int block_threads() { return simt::here.threads; }
KVARTS_DEVICE int block_index() { return simt::here.block; }
KVARTS_DEVICE int block_index_y() { return simt::here.block_y; }
KVARTS_DEVICE int block_index_z() { return simt::here.block_z; }
KVARTS_DEVICE int grid_blocks() { return simt::here.blocks; }
KVARTS_DEVICE int lane_index() { return thread_index() % warp_lanes; }
KVARTS_DEVICE int warp_index() { return thread_index() / warp_lanes; }

template <class T>
KVARTS_DEVICE T kept_here(T value) {
  return value;
}

KVARTS_DEVICE void block_barrier(std::source_location at = std::source_location::current()) {
  simt::block_barrier(at);
}
KVARTS_DEVICE void warp_barrier(std::source_location at = std::source_location::current()) {
  simt::warp_barrier(at);
}

template <class T>
KVARTS_DEVICE T shuffle(T value, int lane,
                        std::source_location at = std::source_location::current()) {
  return simt::shuffle(value, simt::lane_source::index, lane, at);
}
template <class T>
KVARTS_DEVICE T shuffle_xor(T value, int mask,
                            std::source_location at = std::source_location::current()) {
  return simt::shuffle(value, simt::lane_source::exclusive_or, mask, at);
}
KVARTS_DEVICE bool any_lane(bool value, std::source_location at = std::source_location::current()) {
  return simt::ballot(value, at) != 0;
}
KVARTS_DEVICE std::uint32_t ballot(bool value,
                                   std::source_location at = std::source_location::current()) {
  return simt::ballot(value, at);
}

KVARTS_DEVICE std::byte* shared_memory() { return simt::here.shared; }

KVARTS_DEVICE words4 load_once_16(std::byte const* from) {
  simt::check_global(from, 16);
  words4 v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
KVARTS_DEVICE void load_once_8(std::byte const* from, std::uint32_t& low, std::uint32_t& high) {
  simt::check_global(from, 8);
  std::memcpy(&low, from, sizeof low);
  std::memcpy(&high, from + sizeof low, sizeof high);
}
KVARTS_DEVICE std::uint32_t load_once_4(std::byte const* from) {
  simt::check_global(from, 4);
  std::uint32_t v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

KVARTS_DEVICE void mma_f16(float (&d)[4], std::uint32_t const (&a)[4], std::uint32_t const (&b)[2],
                           std::source_location at = std::source_location::current()) {
  simt::multiply(d, a, b, simt::product_of::halfs, at);
}
KVARTS_DEVICE void mma_f16(float (&d)[4], std::uint32_t const (&a)[4], std::uint32_t const (&b)[2],
                           float const (&c)[4],
                           std::source_location at = std::source_location::current()) {
  std::copy(c, c + 4, d);
  mma_f16(d, a, b, at);
}
KVARTS_DEVICE void mma_bf16(float (&d)[4], std::uint32_t const (&a)[4], std::uint32_t const (&b)[2],
                            std::source_location at = std::source_location::current()) {
  simt::multiply(d, a, b, simt::product_of::bfloat16s, at);
}

KVARTS_DEVICE std::uint32_t transpose_8x8(
    std::uint32_t v, std::source_location at = std::source_location::current()) {
  int const row = lane_index() / 4;
  int const first = lane_index() % 4 * 2;
  std::uint32_t const low = shuffle(v, 4 * first + row / 2, at);
  std::uint32_t const high = shuffle(v, 4 * (first + 1) + row / 2, at);
  int const shift = row % 2 * 16;
  return (low >> shift & 0xFFFFu) | (high >> shift & 0xFFFFu) << 16;
}

KVARTS_DEVICE float half_to_float(std::uint16_t bits) { return half::from_bits(bits); }
KVARTS_DEVICE std::uint32_t pack_half2(float low, float high) {
  return half(low).bits | static_cast<std::uint32_t>(half(high).bits) << 16;
}
KVARTS_DEVICE float_pair unpack_half2(std::uint32_t v) {
  return {half_to_float(static_cast<std::uint16_t>(v)),
          half_to_float(static_cast<std::uint16_t>(v >> 16))};
}
KVARTS_DEVICE std::uint32_t mul_half2(std::uint32_t a, std::uint32_t b) {
  float_pair const x = unpack_half2(a);
  float_pair const y = unpack_half2(b);
  return pack_half2(x.low * y.low, x.high * y.high);  // products of halfs are exact in float
}

KVARTS_DEVICE std::uint32_t byte_permute(std::uint32_t low, std::uint32_t high,
                                         std::uint32_t selectors) {
  std::uint64_t const bytes = low | static_cast<std::uint64_t>(high) << 32;
  std::uint32_t v = 0;
  for (int i = 0; i < 4; ++i) {
    std::uint32_t const selector = (selectors >> (4 * i)) & 15u;
    if (selector > 7) simt::fault("permutes bytes by a selector above 7");
    v |= static_cast<std::uint32_t>((bytes >> (8 * selector)) & 0xFFu) << (8 * i);
  }
  return v;
}

KVARTS_DEVICE float magnitude(float x) { return std::fabs(x); }
KVARTS_DEVICE float larger(float a, float b) { return std::fmax(a, b); }
KVARTS_DEVICE float fused(float a, float b, float c) { return std::fma(a, b, c); }
KVARTS_DEVICE float exp2_approx(float x) {
  float const v = std::exp2(x);
  return v < 0x1p-126f ? 0.0f : v;
}
KVARTS_DEVICE float reciprocal_approx(float x) { return 1.0f / x; }
KVARTS_DEVICE float log2_approx(float x) {
  return std::log2(std::fabs(x) < 0x1p-126f ? 0.0f * x : x);
}

KVARTS_DEVICE std::uint32_t atomic_add(std::uint32_t* at, std::uint32_t n) {
  return simt::atomic_add(at, n);
}
KVARTS_DEVICE unsigned long long atomic_add(unsigned long long* at, unsigned long long n) {
  return simt::atomic_add(at, n);
}
KVARTS_DEVICE void thread_fence() { simt::thread_fence(); }

KVARTS_DEVICE void copy_async_16(std::byte* shared, std::byte const* global) {
  simt::copy_async(shared, load_once_16(global));
}
KVARTS_DEVICE void commit_copies() { simt::commit_copies(); }
template <int Pending>
KVARTS_DEVICE void wait_copies() {
  simt::wait_copies(Pending);
}

KVARTS_DEVICE void mbarrier_init(std::uint64_t* shared, std::uint32_t arrivals) {
  simt::mbarrier_init(shared, arrivals);
}
KVARTS_DEVICE void fence_mbarrier_init() {}
KVARTS_DEVICE void mbarrier_expect_bytes(std::uint64_t* shared, std::uint32_t bytes) {
  simt::mbarrier_arrive(shared, bytes);
}
KVARTS_DEVICE void mbarrier_arrive(std::uint64_t* shared) { simt::mbarrier_arrive(shared, 0); }
KVARTS_DEVICE void mbarrier_wait(std::uint64_t* shared, std::uint32_t parity,
                                 std::source_location at = std::source_location::current()) {
  simt::mbarrier_wait(shared, parity, at);
}
KVARTS_DEVICE void bulk_copy(std::byte* shared, std::byte const* global, std::uint32_t bytes,
                             std::uint64_t* barrier) {
  simt::bulk_copy(shared, global, bytes, barrier);
}

KVARTS_DEVICE bool uses_bulk_copies() { return simt::bulk_copies; }

}  // namespace kvarts::kernels
