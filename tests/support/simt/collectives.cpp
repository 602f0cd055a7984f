// SPDX-License-Identifier: Apache-2.0
// What the lanes of a warp compute together.
#include "support/simt/block.hpp"

namespace kvarts::kernels::simt {

namespace {

struct shuffled {
  std::uint64_t value;
  int from;
  std::uint64_t result;
};

struct vote {
  bool value;
  std::uint32_t result;
};

/// One lane's registers of the three matrices.
struct fragments {
  float* d;
  std::uint32_t const* a;
  std::uint32_t const* b;
  product_of type;
};

template <class T>
T& of_lane(void* const (&brought)[warp_lanes], int lane) {
  return *static_cast<T*>(brought[lane]);
}

float element(std::uint32_t pair, int index, product_of type) {
  auto const bits = static_cast<std::uint16_t>(index % 2 == 0 ? pair : pair >> 16);
  if (type == product_of::halfs) return half::from_bits(bits);
  return bfloat16::from_bits(bits);
}

/// d += a b of m16n8k16, element by element; primitives.cuh says which lane holds what.
void multiply_lanes(void* const (&brought)[warp_lanes]) {
  product_of const type = of_lane<fragments>(brought, 0).type;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      int const owner = row % 8 * 4 + column / 2;
      float& sum = of_lane<fragments>(brought, owner).d[row / 8 * 2 + column % 2];
      for (int k = 0; k < 16; ++k) {
        int const quarter = k % 8 / 2;
        auto const& of_a = of_lane<fragments>(brought, row % 8 * 4 + quarter);
        auto const& of_b = of_lane<fragments>(brought, column * 4 + quarter);
        sum += element(of_a.a[k / 8 * 2 + row / 8], k, type) * element(of_b.b[k / 8], k, type);
      }
    }
  }
}

}  // namespace

std::uint64_t shuffle(std::uint64_t value, lane_source source, int operand,
                      std::source_location at) {
  bool const by_index = source == lane_source::index;
  if (operand < 0 || operand >= warp_lanes) {
    fault(("shuffles from lane " + std::to_string(operand) + ", which does not exist").c_str());
  }
  shuffled mine{value, by_index ? operand : here.thread % warp_lanes ^ operand, 0};
  current_block().meet_warp({by_index ? "shuffle" : "shuffle_xor", at}, &mine,
                            [](void* const(&brought)[warp_lanes]) {
                              for (int i = 0; i < warp_lanes; ++i) {
                                auto& lane = of_lane<shuffled>(brought, i);
                                lane.result = of_lane<shuffled>(brought, lane.from).value;
                              }
                            });
  return mine.result;
}

std::uint32_t ballot(bool value, std::source_location at) {
  vote mine{value, 0};
  current_block().meet_warp({"ballot", at}, &mine, [](void* const(&brought)[warp_lanes]) {
    std::uint32_t all = 0;
    for (int i = 0; i < warp_lanes; ++i) {
      if (of_lane<vote>(brought, i).value) all |= 1u << i;
    }
    for (int i = 0; i < warp_lanes; ++i) of_lane<vote>(brought, i).result = all;
  });
  return mine.result;
}

void multiply(float* d, std::uint32_t const* a, std::uint32_t const* b, product_of type,
              std::source_location at) {
  fragments mine{d, a, b, type};
  current_block().meet_warp({type == product_of::halfs ? "mma_f16" : "mma_bf16", at}, &mine,
                            multiply_lanes);
}

}  // namespace kvarts::kernels::simt
