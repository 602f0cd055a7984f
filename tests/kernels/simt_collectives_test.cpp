// SPDX-License-Identifier: Apache-2.0
// The emulator's collectives against what CUDA's manual says of each.
#include "support/catch.hpp"
#include "support/random.hpp"
#include "support/simt/for_each_schedule.hpp"

#include <kvarts/kernels/launch.cuh>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace {

using namespace kvarts::kernels;
using kvarts::bfloat16;
using kvarts::half;

KVARTS_KERNEL(64, 1) exchange(std::uint32_t* rotated, double* mirrored) {
  int const i = thread_index();
  auto const own = static_cast<std::uint32_t>(100 + i);
  rotated[i] = shuffle(own, (lane_index() + 1) % warp_lanes);
  mirrored[i] = shuffle_xor(0.25 * i, 31);
}

TEST_CASE("a lane reads another lane of its own warp") {
  simt::for_each_schedule([](simt::schedule const&) {
    std::vector<std::uint32_t> rotated(64);
    std::vector<double> mirrored(64);
    REQUIRE(launch(exchange, {.threads = 64}, nullptr, rotated.data(), mirrored.data()) ==
            cudaSuccess);
    for (int i = 0; i < 64; ++i) {
      int const warp = i / 32 * 32;
      CHECK(rotated[static_cast<std::size_t>(i)] ==
            static_cast<std::uint32_t>(100 + warp + (i + 1) % 32));
      CHECK(mirrored[static_cast<std::size_t>(i)] == 0.25 * (warp + 31 - i % 32));
    }
  });
}

KVARTS_KERNEL(32, 1) vote(std::uint32_t set, std::uint32_t* votes, int* any) {
  int const i = thread_index();
  votes[i] = ballot((set >> i & 1u) != 0);
  any[i] = any_lane((set >> i & 1u) != 0) ? 1 : 0;
}

TEST_CASE("all lanes see all votes") {
  simt::for_each_schedule([](simt::schedule const&) {
    for (std::uint32_t const set : {0u, 1u, 0x80000000u, 0x12345678u, 0xFFFFFFFFu}) {
      std::vector<std::uint32_t> votes(32);
      std::vector<int> any(32);
      launch(vote, {}, nullptr, set, votes.data(), any.data());
      CHECK(votes == std::vector<std::uint32_t>(32, set));
      CHECK(any == std::vector<int>(32, set != 0 ? 1 : 0));
    }
  });
}

/// a [16, 16], b [16, 8], d [16, 8], row-major; the fragments are those of the PTX manual.
template <class T>
KVARTS_KERNEL(32, 1)
multiply(T const* a, T const* b, float* d) {
  int const group = lane_index() >> 2;
  int const in_group = lane_index() & 3;
  std::uint32_t a_registers[4];
  for (int i = 0; i < 8; ++i) {
    int const row = group + (i / 2 % 2 == 1 ? 8 : 0);
    int const column = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
    std::uint32_t const bits = a[row * 16 + column].bits;
    a_registers[i / 2] = i % 2 == 0 ? bits : a_registers[i / 2] | bits << 16;
  }
  std::uint32_t b_registers[2];
  for (int i = 0; i < 4; ++i) {
    int const row = in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0);
    std::uint32_t const bits = b[row * 8 + group].bits;
    b_registers[i / 2] = i % 2 == 0 ? bits : b_registers[i / 2] | bits << 16;
  }
  float sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = d[(group + i / 2 * 8) * 8 + in_group * 2 + i % 2];
  if constexpr (std::is_same_v<T, half>) {
    mma_f16(sums, a_registers, b_registers);
  } else {
    mma_bf16(sums, a_registers, b_registers);
  }
  for (int i = 0; i < 4; ++i) d[(group + i / 2 * 8) * 8 + in_group * 2 + i % 2] = sums[i];
}

TEMPLATE_TEST_CASE("mma adds the product of two matrices", "", half, bfloat16) {
  kvarts::test::random_source random(kvarts::test::test_seed());
  CAPTURE(kvarts::test::test_seed());
  std::vector<TestType> a(16 * 16);
  std::vector<TestType> b(16 * 8);
  std::vector<float> before(16 * 8);
  for (TestType& x : a) x = TestType(static_cast<float>(random.normal()));
  for (TestType& x : b) x = TestType(static_cast<float>(random.normal() + 0.5));
  for (float& x : before) x = static_cast<float>(random.normal());
  simt::for_each_schedule([&](simt::schedule const&) {
    std::vector<float> d = before;
    launch(multiply<TestType>, {}, nullptr, static_cast<TestType const*>(a.data()),
           static_cast<TestType const*>(b.data()), d.data());
    for (std::size_t row = 0; row < 16; ++row) {
      for (std::size_t column = 0; column < 8; ++column) {
        double sum = before[row * 8 + column];
        for (std::size_t k = 0; k < 16; ++k) {
          sum += static_cast<double>(a[row * 16 + k]) * static_cast<double>(b[k * 8 + column]);
        }
        CHECK(std::fabs(d[row * 8 + column] - sum) < 1e-5);
      }
    }
  });
}

}  // namespace
