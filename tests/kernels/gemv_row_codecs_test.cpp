// SPDX-License-Identifier: Apache-2.0
// Products of every codec with one scale a row, and of plain 16-bit rows, at the common head_dim.
#include "support/sanitized.hpp"
#if KVARTS_TEST_SANITIZED
#define KVARTS_HEAD_DIMS 64
#else
#define KVARTS_HEAD_DIMS 128
#endif
#define KVARTS_BLOCKS 32
#include "support/gemv/gemv_checks.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

TEST_CASE("products of row codecs are those of the decoded rows") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  detail::for_each_type(row_codecs{}, [&](auto tag) {
    using codec = typename decltype(tag)::type;
    gemv_shape s{.heads = 2, .query_heads = 6, .head_dim = KVARTS_HEAD_DIMS};
    check_products<codec>(s, seed);
    s.heads = 1;
    s.query_heads = 11;
    s.lengths = {33, 0, 161};
    check_products<codec>(s, seed, 3);
  });
}

}  // namespace
