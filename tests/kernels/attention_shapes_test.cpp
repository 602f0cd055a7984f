// SPDX-License-Identifier: Apache-2.0
// Attention at other head_dims, K and V of different ones, pages and tiles of every size.
#include "support/sanitized.hpp"
#if KVARTS_TEST_SANITIZED
#define KVARTS_HEAD_DIMS 80, 128, 192
#else
#define KVARTS_HEAD_DIMS 64, 80, 96, 128, 192, 256
#endif
#define KVARTS_CHANNEL_GROUPS 32
#define KVARTS_COLUMN_TILES 1
#define KVARTS_WINDOW_TYPES half
#include "support/attention/attention_checks.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

TEST_CASE("head_dims and pages") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for (auto const& [key_dim, value_dim] :
       {std::pair{64, 64}, {80, 80}, {96, 96}, {128, 128}, {192, 192}, {192, 128}, {256, 256}}) {
    if (!kernels::has_value(kernels::head_dims{}, key_dim)) continue;
    for (int const page : {16, 32, 128}) {
      attention_case c{.heads = 1, .query_heads = 3, .key_dim = key_dim, .value_dim = value_dim};
      c.tile_tokens = page == 16 ? 16 : 32;
      c.page_tokens = page;
      c.lengths = {253, 1, 160};
      check_attention<row_codec<midrise<3>>, row_codec<midrise<2>>>(c, seed, 2);
    }
  }
}

}  // namespace
