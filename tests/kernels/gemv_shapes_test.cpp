// SPDX-License-Identifier: Apache-2.0
// Products at every head_dim, tile and group length that is compiled.
#include "support/sanitized.hpp"
#define KVARTS_CHANNEL_GROUPS 32
#if KVARTS_TEST_SANITIZED
#define KVARTS_HEAD_DIMS 80, 96  // those whose lanes have a tail
#else
#define KVARTS_HEAD_DIMS 64, 80, 96, 128, 192, 256
#endif
#include "support/gemv/gemv_checks.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr int head_dims[] = {KVARTS_HEAD_DIMS};

template <class Codec>
void check_row_codec() {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for (int const head_dim : head_dims) {
    for (int const tile_tokens : {16, 32, 64}) {
      check_products<Codec>({.heads = 2,
                             .query_heads = 6,
                             .head_dim = head_dim,
                             .tile_tokens = tile_tokens,
                             .lengths = {77}},
                            seed);
    }
  }
}

TEST_CASE("3 bits at every head_dim and tile") { check_row_codec<row_codec<midrise<3>>>(); }
TEST_CASE("2 bits at every head_dim and tile") { check_row_codec<row_codec<midrise<2>>>(); }
TEST_CASE("8 bits at every head_dim and tile") { check_row_codec<row_codec<int8_head>>(); }
TEST_CASE("halfs at every head_dim and tile") { check_row_codec<identity<half>>(); }

TEST_CASE("groups of tokens of every length") {
  using codec = codec<symmetric<4, range::searched>, axis::token>;
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for (int const head_dim : {64, 80, 256}) {
    if (!kernels::has_value(kernels::head_dims{}, head_dim)) continue;
    for (int const group : {16, 32, 64, 128}) {
      gemv_shape s{.heads = 1, .query_heads = 3, .head_dim = head_dim, .group = group};
      s.tile_tokens = group;
      s.lengths = {group, 2 * group + 13};
      if (head_dim <= 192) check_qk<codec, fragment<operand::keys>>(s, seed);
      check_pv<codec, fragment<operand::values>>(s, seed, 2);
    }
  }
}

TEST_CASE("keys grouped along tokens are refused where their queries do not fit") {
  if (sanitized) return;  // that head_dim is not compiled
  using codec = codec<symmetric<4, range::searched>, axis::token>;
  gemv_shape const s{.heads = 1, .query_heads = 1, .head_dim = 256, .lengths = {32}};
  coded_batch<codec, fragment<operand::keys>> const keys(s, [](int) { return rows(1, 256, 32); });
  CHECK(cuda::explain_gemv(operand::keys, keys.codes(), keys.batch(), 1).sentence() ==
        "no kernel is compiled for keys grouped along tokens at head_dim 256: at most 192");
  CHECK(cuda::gemv_qk(keys.codes(), keys.batch(), 1, nullptr, nullptr, nullptr, nullptr) ==
        cudaErrorNotSupported);
}

}  // namespace
