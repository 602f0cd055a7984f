// SPDX-License-Identifier: Apache-2.0
// Collectives with lanes that are missing, or that mean something else.
#include "support/simt/planted_fault.hpp"

#include <kvarts/kernels/launch.cuh>

#include <cstdint>
#include <vector>

namespace {

using namespace kvarts::kernels;
using kvarts::kernels::simt::finder;

template <bool Right>
KVARTS_KERNEL(32, 1)
add_lanes(int* out, int n) {
  int const i = thread_index();
  if (!Right && i >= n) return;
  int sum = i < n ? 1 : 0;
  for (int mask = 16; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
  if (i == 0) *out = sum;
}
template <bool Right>
bool lane_that_left() {
  int out = 0;
  launch(add_lanes<Right>, {}, nullptr, &out, 20);
  return out == 20;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
shuffle_in_branch(int* out) {
  int const i = thread_index();
  int value = i;
  if (Right || i < 16) value = shuffle(value, i ^ 1);
  if (i < 16) out[i] = value;
  warp_barrier();
}
template <bool Right>
bool half_of_the_lanes() {
  std::vector<int> out(16);
  launch(shuffle_in_branch<Right>, {}, nullptr, out.data());
  return out[0] == 1 && out[15] == 14;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
reduce(int* out) {
  int sum = 1 << (thread_index() % 31);
  for (int mask = Right ? 16 : 8; mask > 0; mask /= 2) sum |= shuffle_xor(sum, mask);
  if (thread_index() == 0) *out = sum;
}
template <bool Right>
bool reduction_without_a_step() {
  int out = 0;
  launch(reduce<Right>, {}, nullptr, &out);
  return out == 0x7FFFFFFF;
}

/// Groups of 8 lanes reduce, with a mask that leaves the group.
template <bool Right>
KVARTS_KERNEL(32, 1)
reduce_groups(int* out) {
  int sum = thread_index() / 8 + 1;
  for (int mask = Right ? 4 : 8; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
  if (thread_index() % 8 == 0) out[thread_index() / 8] = sum;
}
template <bool Right>
bool mask_beyond_the_group() {
  std::vector<int> out(4);
  launch(reduce_groups<Right>, {}, nullptr, out.data());
  return out == std::vector<int>{8, 16, 24, 32};
}

template <bool Right>
KVARTS_KERNEL(32, 1)
vote_or_shuffle(std::uint32_t* out) {
  int const i = thread_index();
  std::uint32_t value = 1;
  if (Right || i < 31) {
    value = ballot(i == 3);
  } else {
    value = shuffle(value, 0);
  }
  out[i] = value;
}
template <bool Right>
bool different_collectives() {
  std::vector<std::uint32_t> out(32);
  launch(vote_or_shuffle<Right>, {}, nullptr, out.data());
  return out[0] == 8;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
from_next_lane(int* out) {
  int const i = thread_index();
  int const value = shuffle(i, Right ? (i + 1) % 32 : i + 1);
  out[i] = value;
}
template <bool Right>
bool lane_32() {
  std::vector<int> out(32);
  launch(from_next_lane<Right>, {}, nullptr, out.data());
  return out[31] == 0 && out[30] == 31;
}

KVARTS_KERNEL(64, 1) any_thread(int* out) {
  int const i = thread_index();
  bool const any = any_lane(i % 32 == 5);
  if (i % 32 == 0) out[i / 32] = any ? 1 : 0;
}
template <bool Right>
bool part_of_a_warp() {
  std::vector<int> out(2);
  launch(any_thread, {.threads = Right ? 64u : 40u}, nullptr, out.data());
  return out[1] == 1;
}

/// a[i][k] = (i + 1) (k + 1) / 64 times b[k][j] = 1 for k = j or k = j + 8, else 0.
enum class fragments { right, a_swapped, b_swapped, d_transposed };
template <fragments Order>
KVARTS_KERNEL(32, 1)
multiply_tile(float* out) {
  int const g = lane_index() / 4;
  int const r = lane_index() % 4;
  auto const a_pair = [&](int row, int k) {
    auto const element = [&](int column) {
      return static_cast<float>((row + 1) * (column + 1)) / 64.0f;
    };
    return pack_half2(element(k), element(k + 1));
  };
  auto const b_pair = [&](int k) {
    auto const element = [&](int row) { return row % 8 == g ? 1.0f : 0.0f; };
    return pack_half2(element(k), element(k + 1));
  };
  constexpr bool swapped = Order == fragments::a_swapped;
  std::uint32_t const low = a_pair(g + 8, 2 * r);
  std::uint32_t const high = a_pair(g, 2 * r + 8);
  std::uint32_t const a[4] = {a_pair(g, 2 * r), swapped ? high : low, swapped ? low : high,
                              a_pair(g + 8, 2 * r + 8)};
  std::uint32_t b[2] = {b_pair(2 * r), b_pair(2 * r + 8)};
  if (Order == fragments::b_swapped) b[0] = b[1] = b_pair(2 * (3 - r));
  float d[4] = {};
  mma_f16(d, a, b);
  for (int i = 0; i < 4; ++i) {
    int const row = g + i / 2 * 8;
    int const column = 2 * r + i % 2;
    out[Order == fragments::d_transposed ? column * 16 + row : row * 8 + column] = d[i];
  }
}
template <fragments Order>
bool multiplied() {
  std::vector<float> out(128);
  launch(multiply_tile<Order>, {}, nullptr, out.data());
  bool right = true;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      auto const expected = static_cast<float>((row + 1) * (2 * column + 10)) / 64.0f;
      right = right && out[static_cast<std::size_t>(row * 8 + column)] == expected;
    }
  }
  return right;
}

template <bool Right>
KVARTS_KERNEL(32, 1)
permute(std::uint32_t* out) {
  *out = byte_permute(0x33221100u, 0x77665544u, Right ? 0x5140u : 0xD1C0u);
}
template <bool Right>
bool selector_above_7() {
  std::uint32_t out = 0;
  launch(permute<Right>, {.threads = 1}, nullptr, &out);
  return out == 0x55114400u;
}

TEST_CASE("faults of collectives are found") {
  simt::check_planted({
      {"a shuffle from a lane that has left", finder::diagnosis, lane_that_left<false>,
       lane_that_left<true>},
      {"a shuffle in a branch that half of the lanes take", finder::diagnosis,
       half_of_the_lanes<false>, half_of_the_lanes<true>},
      {"a reduction that leaves out a step", finder::result, reduction_without_a_step<false>,
       reduction_without_a_step<true>},
      {"an exclusive or beyond the group", finder::result, mask_beyond_the_group<false>,
       mask_beyond_the_group<true>},
      {"a ballot of some lanes, a shuffle of others", finder::diagnosis,
       different_collectives<false>, different_collectives<true>},
      {"a shuffle from lane 32", finder::diagnosis, lane_32<false>, lane_32<true>},
      {"a collective in a warp of 8 lanes", finder::diagnosis, part_of_a_warp<false>,
       part_of_a_warp<true>},
      {"mma with two registers of a exchanged", finder::result, multiplied<fragments::a_swapped>,
       multiplied<fragments::right>},
      {"mma with rows of b in the wrong order", finder::result, multiplied<fragments::b_swapped>,
       multiplied<fragments::right>},
      {"mma with its sums transposed", finder::result, multiplied<fragments::d_transposed>,
       multiplied<fragments::right>},
      {"a byte selector that replicates signs", finder::diagnosis, selector_above_7<false>,
       selector_above_7<true>},
  });
}

}  // namespace
