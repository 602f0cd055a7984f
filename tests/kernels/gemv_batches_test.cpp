// SPDX-License-Identifier: Apache-2.0
// Products of batches: GQA ratios, pages, spans that begin anywhere, empty sequences, splits.
#define KVARTS_HEAD_DIMS 64
#define KVARTS_CHANNEL_GROUPS 32
#include "support/gemv/gemv_checks.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

using row3 = row_codec<midrise<3>>;
using channels3 = codec<symmetric<3, range::narrow>, axis::channel>;
using tokens2 = codec<hybrid<2, range::narrow>, axis::token>;

TEST_CASE("every GQA ratio") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for (int const shared : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 33, 71}) {
    if (sanitized && shared != 5 && shared != 12) continue;
    int const heads = shared > 16 ? 1 : 3;
    gemv_shape const s{
        .heads = heads, .query_heads = heads * shared, .head_dim = 64, .lengths = {41}};
    check_products<row3>(s, seed);
    check_products<identity<half>>(s, seed);
  }
}

TEST_CASE("a query head reads its own KV head, exactly") {
  // V of KV head h is h + 1 everywhere; weights that sum up to 1 give it back.
  gemv_shape const s{.heads = 14, .query_heads = 42, .head_dim = 64, .lengths = {64}};
  coded_batch<identity<half>, fragment<operand::values>> const values(s, [&](int) {
    rows r(s.heads, s.head_dim, 64);
    for (int h = 0; h < s.heads; ++h) {
      for (int t = 0; t < 64; ++t) {
        for (int d = 0; d < 64; ++d) r.at(t, h, d) = static_cast<float>(h + 1);
      }
    }
    return r;
  });
  std::vector<float> p(42 * 64, 1.0f / 64), output(42 * 64), scratch(42 * 64 * 2);
  REQUIRE(cuda::gemv_pv(values.codes(), values.batch(), 42, p.data(), output.data(), {2, 0},
                        scratch.data(), nullptr) == cudaSuccess);
  for (int i = 0; i < 42 * 64; ++i) {
    CHECK(output[static_cast<std::size_t>(i)] == static_cast<float>(i / 64 / 3 + 1));
  }
}

TEST_CASE("pages of any size, spans that begin anywhere") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for (int const page : {16, 32, 64, 128}) {
    gemv_shape s{.heads = 2, .query_heads = 8, .head_dim = 64, .page_tokens = page};
    s.tile_tokens = page == 16 ? 16 : 32;
    s.group = s.tile_tokens;
    s.lengths = {1, 0, 200, 128, 33};
    check_products<row3>(s, seed, 1);
    s.begins = {0, 0, 37, 127, 32};
    check_products<row3>(s, seed, 4);
    if (page > 16) check_products<channels3>(s, seed, 4);
    check_products<tokens2>(s, seed, 3);
    check_products<identity<bfloat16>>(s, seed, 4);
  }
}

TEST_CASE("tails of every length") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for (std::int64_t length = 1; length <= 50; length += sanitized ? 7 : 1) {
    gemv_shape const s{.heads = 1, .query_heads = 2, .head_dim = 64, .lengths = {length}};
    check_products<row3>(s, seed, static_cast<int>(length % 3) + 1);
    check_products<tokens2>(s, seed, 1);
    check_products<identity<half>>(s, seed, 1);
  }
}

TEST_CASE("many sequences of mixed lengths") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  gemv_shape s{.heads = 1, .query_heads = 4, .head_dim = 64, .page_tokens = 32, .lengths = {}};
  for (int i = 0; i < (sanitized ? 20 : 96); ++i) {
    s.lengths.push_back(random.bits() % 5 == 0 ? 0 : random.between(1, 90));
  }
  check_products<row3>(s, seed);
}

}  // namespace
