// SPDX-License-Identifier: Apache-2.0
// Kernels that read or write what they must not.
#include "support/simt/planted_fault.hpp"

#include <kvarts/kernels/launch.cuh>

#include <cstdint>
#include <numeric>
#include <vector>

namespace {

using namespace kvarts::kernels;
using kvarts::kernels::simt::finder;

std::int32_t* shared_ints() { return reinterpret_cast<std::int32_t*>(shared_memory()); }

std::vector<int> counted(int count) {
  std::vector<int> v(static_cast<std::size_t>(count));
  std::iota(v.begin(), v.end(), 0);
  return v;
}

/// Each thread passes its value to the next.
template <bool Right>
KVARTS_KERNEL(32, 1)
shift_right(int* out) {
  int const i = thread_index();
  shared_ints()[Right ? (i + 1) % 32 : i + 1] = i;
  block_barrier();
  out[i] = i == 0 ? 0 : shared_ints()[i];
}
template <bool Right>
bool shared_write_too_far() {
  std::vector<int> out(32);
  launch(shift_right<Right>, {.shared_bytes = 128}, nullptr, out.data());
  return out[31] == 30;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
difference(int* out) {
  int const i = thread_index();
  shared_ints()[i] = i * i;
  block_barrier();
  out[i] = Right && i == 31 ? 0 : shared_ints()[i + 1] - shared_ints()[i];
}
template <bool Right>
bool shared_read_too_far() {
  std::vector<int> out(32);
  launch(difference<Right>, {.shared_bytes = 128}, nullptr, out.data());
  return out[30] == 61 && out[31] == 0;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
shift_left(int* out) {
  int const i = thread_index();
  if (!Right || i > 0) shared_ints()[i - 1] = i;
  block_barrier();
  out[i] = i == 31 ? 0 : shared_ints()[i];
}
template <bool Right>
bool shared_write_in_front() {
  std::vector<int> out(32);
  launch(shift_left<Right>, {.shared_bytes = 128}, nullptr, out.data());
  return out[30] == 31;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
number(int* out, int n) {
  int const i = block_index() * block_threads() + thread_index();
  if (Right ? i < n : i <= n) out[i] = i;
}
template <bool Right>
bool global_write_too_far() {
  std::vector<int> out(70);
  launch(number<Right>, {.blocks = 3}, nullptr, out.data(), 70);
  return out == counted(70);
}

template <bool Right>
KVARTS_KERNEL(32, 1)
copy_words(std::byte const* from, std::uint32_t* out, int words) {
  int const i = 4 * thread_index();
  if (Right && i + 4 > words) return;
  words4 const v = load_once_16(from + 4 * i);
  for (int k = 0; k < 4 && i + k < words; ++k) out[i + k] = v.w[k];
}
/// The last 16 bytes reach beyond the words, whose number is no multiple of 4.
template <bool Right>
bool global_read_too_far() {
  std::vector<std::uint32_t> from(Right ? 128 : 127, 9);
  std::vector<std::uint32_t> out(128);
  launch(copy_words<Right>, {}, nullptr, reinterpret_cast<std::byte const*>(from.data()),
         out.data(), static_cast<int>(from.size()));
  return out[126] == 9;
}

/// Sums a row that does not fill the block; what pads it must be zeroed.
template <bool Right>
KVARTS_KERNEL(32, 1)
sum_padded(float const* row, int n, float* out) {
  auto* const padded = reinterpret_cast<float*>(shared_memory());
  int const i = thread_index();
  if (Right || i < n) padded[i] = i < n ? row[i] : 0.0f;
  warp_barrier();
  float sum = padded[31 - i];
  for (int mask = 16; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
  if (i == 0) *out = sum;
}
template <bool Right>
bool uninitialized_shared() {
  std::vector<float> row(20, 1.0f);
  float sum = 0;
  launch(sum_padded<Right>, {.shared_bytes = 128}, nullptr, static_cast<float const*>(row.data()),
         20, &sum);
  return sum == 20.0f;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
number_by_stride(int* out, int n) {
  int const stride = Right ? grid_blocks() * block_threads() : n;
  for (int i = block_index() * block_threads() + thread_index(); i < n; i += stride) out[i] = i;
}
template <bool Right>
bool grid_size_assumed() {
  std::vector<int> out(200);
  launch(number_by_stride<Right>, {.blocks = 3}, nullptr, out.data(), 200);
  return out == counted(200);
}

template <bool Right>
KVARTS_KERNEL(64, 1)
store_one(int* out) {
  int const i = thread_index();
  if (Right ? i == 7 : i % 8 == 7) *out = i;
}
template <bool Right>
bool two_writers() {
  int out = 0;
  launch(store_one<Right>, {.threads = 64}, nullptr, &out);
  return out == 7;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
neighbours(int const* from, int* to) {
  int const i = thread_index();
  int const left = from[(i + 31) % 32];
  (Right ? to : const_cast<int*>(from))[i] = left;
}
template <bool Right>
bool updated_in_place() {
  std::vector<int> from = counted(32);
  std::vector<int> to(32);
  launch(neighbours<Right>, {}, nullptr, static_cast<int const*>(from.data()), to.data());
  std::vector<int> const& result = Right ? to : from;
  return result[0] == 31 && result[31] == 30 && result[1] == 0;
}

/// Rows of 20 bytes do not start at multiples of 16.
template <bool Right>
KVARTS_KERNEL(32, 1)
first_word_of_row(std::byte const* from, std::uint32_t* out) {
  int const row_bytes = Right ? 32 : 20;
  out[thread_index()] = load_once_16(from + row_bytes * thread_index()).w[0];
}
template <bool Right>
bool misaligned_load() {
  std::vector<words4> from(65, {{5, 5, 5, 5}});
  std::vector<std::uint32_t> out(32);
  launch(first_word_of_row<Right>, {}, nullptr, reinterpret_cast<std::byte const*>(from.data()),
         out.data());
  return out[31] == 5;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
store_rows(std::byte* to) {
  int const row_bytes = Right ? 32 : 24;
  auto* const row = reinterpret_cast<words4*>(to + row_bytes * thread_index());
  for (std::uint32_t& w : row->w) w = 4;
}
template <bool Right>
bool misaligned_store() {
  std::vector<words4> to(65);
  launch(store_rows<Right>, {}, nullptr, reinterpret_cast<std::byte*>(to.data()));
  return to[0].w[3] == 4;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
load_shared_as_global(std::uint32_t* out) {
  auto* const words = reinterpret_cast<std::uint32_t*>(shared_memory());
  int const i = thread_index();
  words[i] = 3;
  out[i] = Right ? words[i] : load_once_4(shared_memory() + 4 * i);
}
template <bool Right>
bool shared_taken_for_global() {
  std::vector<std::uint32_t> out(32);
  launch(load_shared_as_global<Right>, {.shared_bytes = 128}, nullptr, out.data());
  return out[31] == 3;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
far_offset(std::int64_t* out, int stride) {
  int const i = thread_index();
  out[i] = Right ? static_cast<std::int64_t>(i) * stride : i * stride;
}
template <bool Right>
bool offset_in_32_bits() {
  std::vector<std::int64_t> out(32);
  launch(far_offset<Right>, {}, nullptr, out.data(), 100'000'000);
  return out[31] == 3'100'000'000;
}

TEST_CASE("faults of memory are found") {
  simt::check_planted({
      {"a write behind shared memory", finder::diagnosis | finder::asan,
       shared_write_too_far<false>, shared_write_too_far<true>},
      {"a write in front of shared memory", finder::diagnosis | finder::asan,
       shared_write_in_front<false>, shared_write_in_front<true>},
      {"a read behind shared memory", finder::result | finder::asan, shared_read_too_far<false>,
       shared_read_too_far<true>},
      {"a write behind global memory", finder::asan, global_write_too_far<false>,
       global_write_too_far<true>},
      {"a read of 16 bytes that reaches beyond global memory", finder::asan,
       global_read_too_far<false>, global_read_too_far<true>},
      {"shared memory that nobody initialized", finder::result, uninitialized_shared<false>,
       uninitialized_shared<true>},
      {"a grid taken for as large as the data", finder::result, grid_size_assumed<false>,
       grid_size_assumed<true>},
      {"several threads store to one place", finder::result | finder::tsan, two_writers<false>,
       two_writers<true>},
      {"data updated in place that neighbours read", finder::result | finder::tsan,
       updated_in_place<false>, updated_in_place<true>},
      {"a misaligned load of 16 bytes", finder::diagnosis, misaligned_load<false>,
       misaligned_load<true>},
      {"a misaligned store of 16 bytes", finder::ubsan, misaligned_store<false>,
       misaligned_store<true>},
      {"shared memory loaded as if it were global", finder::diagnosis,
       shared_taken_for_global<false>, shared_taken_for_global<true>},
      {"an offset that 32 bits do not hold", finder::ubsan, offset_in_32_bits<false>,
       offset_in_32_bits<true>},
  });
}

}  // namespace
