// SPDX-License-Identifier: Apache-2.0
// Attention over parts of sequences: each is what float64 says of it, and all of them, merged by
// the log-sum-exps that they come with, are the whole. Parts that see nothing change nothing.
#define KVARTS_HEAD_DIMS 64
#define KVARTS_BLOCKS 32
#define KVARTS_COLUMN_TILES 1
#define KVARTS_WINDOW_TYPES half
#include "support/attention/attention_checks.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

using cache = coded_cache<row_codec<midrise<3>>, row_codec<midrise<2>>>;

attention_case three_sequences() {
  attention_case c{.query_heads = 6, .key_dim = 64, .value_dim = 64};
  c.lengths = {300, 0, 90};
  c.query_tokens = 2;
  return c;
}

/// Attention over one part, checked; outputs and log-sum-exps are left in `run`.
void attend_part(cache& whole, token_range part, attention_run& run) {
  CAPTURE(part.begin, part.end);
  whole.shape.positions = part;
  auto const view = whole.view();
  auto const request = run.request(whole.shape);
  auto const plan = cuda::plan_attention(view, request, 2);
  aligned_bytes scratch = new_scratch(plan);
  std::fill(run.output.begin(), run.output.end(), std::byte{0xFF});
  REQUIRE(cuda::attention(view, request, plan, scratch.data(), nullptr) == cudaSuccess);
  require_exact(whole, run);
}

/// Merges the result of a part into `sum`, row by row.
void merge_into(attention_run& sum, attention_run const& part, int dim) {
  for (std::size_t row = 0; row < sum.lse.size(); ++row) {
    std::size_t const at = row * static_cast<std::size_t>(dim) * sizeof(float);
    std::vector<float> mine(static_cast<std::size_t>(dim)), theirs = mine;
    std::memcpy(mine.data(), sum.output.data() + at, mine.size() * sizeof(float));
    std::memcpy(theirs.data(), part.output.data() + at, mine.size() * sizeof(float));
    merge_partials(mine.data(), sum.lse[row], theirs.data(), part.lse[row], dim);
    std::memcpy(sum.output.data() + at, mine.data(), mine.size() * sizeof(float));
  }
}

void check_parts(std::vector<std::int64_t> const& ends, std::uint64_t seed) {
  random_source random(seed);
  attention_case const c = three_sequences();
  cache whole(c, random);
  attention_run part(c, random);
  attention_run sum = part;
  std::fill(sum.output.begin(), sum.output.end(), std::byte{0});
  std::fill(sum.lse.begin(), sum.lse.end(), -std::numeric_limits<float>::infinity());
  std::int64_t begin = 0;
  for (std::int64_t const end : ends) {
    attend_part(whole, {begin, end}, part);
    merge_into(sum, part, c.value_dim);
    begin = end;
  }
  whole.shape.positions = c.positions;
  require_exact(whole, sum);
}

TEST_CASE("sinks, codes and recent tokens apart, and parts that begin and end inside of blocks") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  check_parts({32, 204, 1000}, seed);
  check_parts({20, 33, 91, 150, 299, 300}, seed);
}

TEST_CASE("parts that see nothing: empty ones, ones beyond every sequence, the first of all") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  check_parts({0, 0, 150, 150, 300, 300, 400, 500}, seed);
}

}  // namespace
