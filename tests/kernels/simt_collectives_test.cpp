// SPDX-License-Identifier: Apache-2.0
// The emulator's collectives against what CUDA's manual says of each.
#include <kvarts/kernels/launch.cuh>

#include <bit>
#include <cstdint>
#include <support/catch.hpp>
#include <support/simt/for_each_schedule.hpp>
#include <vector>

namespace {

using namespace kvarts::kernels;

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

}  // namespace
