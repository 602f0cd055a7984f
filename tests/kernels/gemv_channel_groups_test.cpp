// SPDX-License-Identifier: Apache-2.0
// Products of every quantizer in groups of channels, at the common head_dim.
#define KVARTS_HEAD_DIMS 128
#define KVARTS_BLOCKS 32
#define KVARTS_CHANNEL_GROUPS 32
#include "support/checked_quantizers.hpp"
#include "support/gemv/gemv_checks.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

TEST_CASE("products of groups of channels are those of the decoded rows") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  detail::for_each_grouped<axis::channel>(checked_quantizers{}, [&](auto tag) {
    using codec = typename decltype(tag)::type;
    check_products<codec>({.heads = 2, .query_heads = 6, .lengths = {77}}, seed);
    check_products<codec>({.heads = 1, .query_heads = 11, .lengths = {33, 0, 161}}, seed, 3);
  });
}

}  // namespace
