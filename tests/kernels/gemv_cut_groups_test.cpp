// SPDX-License-Identifier: Apache-2.0
// Products with groups of channels of every length that is compiled.
#include "support/sanitized.hpp"
#if KVARTS_TEST_SANITIZED
#define KVARTS_HEAD_DIMS 80
#else
#define KVARTS_HEAD_DIMS 80, 192
#endif
#define KVARTS_BLOCKS 32
#include "support/gemv/gemv_checks.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

TEST_CASE("groups of channels of every length, with a last group that is cut") {
  using codec = codec<hybrid<2, range::wide>, axis::channel>;
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for (int const head_dim : {KVARTS_HEAD_DIMS}) {
    for (int const group : {16, 32, 64, 128}) {
      gemv_shape s{.heads = 2, .query_heads = 4, .head_dim = head_dim, .group = group};
      s.lengths = {45};
      check_products<codec>(s, seed);
    }
  }
}

}  // namespace
