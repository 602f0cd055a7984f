// SPDX-License-Identifier: Apache-2.0
// Attention of any number of query heads and query tokens, and what scores and masks may do.
#define KVARTS_HEAD_DIMS 64
#define KVARTS_BLOCKS 32
#include "support/attention/attention_checks.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

using k3 = row_codec<midrise<3>>;
using v2 = row_codec<midrise<2>>;

attention_case small(int heads, int shared) {
  return {.heads = heads, .query_heads = heads * shared, .key_dim = 64, .value_dim = 64};
}

TEST_CASE("every GQA ratio") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for (int const shared : {1, 2, 3, 5, 6, 7, 8, 9, 12, 16, 17, 71}) {
    if (sanitized && shared != 3 && shared != 12) continue;
    attention_case c = small(shared > 16 ? 1 : 2, shared);
    c.lengths = {201};
    check_attention<k3, v2>(c, seed, 2);
  }
}

TEST_CASE("queries and outputs of any type, windows in bfloat16") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for (dtype const type : {dtype::f16, dtype::bf16, dtype::f32}) {
    attention_case c = small(2, 4);
    c.query_type = c.output_type = type;
    c.window_type = type == dtype::f16 ? dtype::f16 : dtype::bf16;
    check_attention<k3, v2>(c, seed);
  }
}

TEST_CASE("several query tokens, causal and as trees") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for (int const tokens : {2, 3, 8}) {
    if (sanitized && tokens != 3) continue;
    attention_case c = small(2, 3);
    c.query_tokens = tokens;
    // Also fewer tokens than queries: those before the first see nothing.
    c.lengths = {300, 2, 161, 0};
    check_attention<k3, v2>(c, seed, 2);
    c.lengths = {300, 64, 161};
    for (int const nodes : {tokens, 64}) {
      c.tree_tokens = nodes;
      check_attention<k3, v2>(c, seed, 2);
    }
  }
}

TEST_CASE("sliding windows, soft caps, sink logits, scales") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  attention_case c = small(2, 2);
  c.query_tokens = 2;
  c.lengths = {300, 40};
  for (std::int64_t const window : {1, 33, 100, 250, 1000}) {
    if (sanitized && window != 33) continue;
    CAPTURE(window);
    c.sliding_window = window;
    check_attention<k3, v2>(c, seed, 2);
  }
  c.sliding_window = 0;
  c.soft_cap = 3.0f;
  check_attention<k3, v2>(c, seed);
  c.soft_cap = 0.0f;
  c.sink_logits = true;
  c.scale = 0.4f;
  check_attention<k3, v2>(c, seed, 2);
}

TEST_CASE("many sequences of mixed lengths on many blocks of threads") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  attention_case c = small(1, 2);
  c.lengths.clear();
  for (int i = 0; i < (sanitized ? 20 : 150); ++i) {
    c.lengths.push_back(random.bits() % 4 == 0 ? 0 : random.between(1, i % 10 == 0 ? 400 : 60));
  }
  check_attention<k3, v2>(c, seed, 5);
}

TEST_CASE("no score is too low or too high") {
  // Scores of -500 and of +500 alike: the first block sets the maximum.
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for (float const scale : {-8.0f, 8.0f, 1e-4f}) {
    if (sanitized && scale != 8.0f) continue;
    attention_case c = small(1, 2);
    c.scale = scale;
    check_attention<k3, v2>(c, seed, 2);
  }
}

TEST_CASE("the preset of plain bfloat16 rows") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  attention_case c = small(2, 3);
  c.window = preset::bf16.window;
  c.window_type = dtype::bf16;
  c.shifts_keys = false;
  c.key_rotation = c.value_rotation = {};
  c.lengths = {33, 0, 201};
  check_attention<identity<bfloat16>, identity<bfloat16>>(c, seed, 3);
}

}  // namespace
