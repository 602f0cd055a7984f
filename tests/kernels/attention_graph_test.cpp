// SPDX-License-Identifier: Apache-2.0
// What a graph replays while sequences grow: launches with the arguments, the plan and the scratch
// that they had when sequences were empty; lengths, slots and block tables are read from memory.
#define KVARTS_HEAD_DIMS 64
#define KVARTS_BLOCKS 32
#define KVARTS_CHANNEL_GROUPS 32
#define KVARTS_COLUMN_TILES 1
#define KVARTS_WINDOW_TYPES half
#include "support/attention/attention_checks.hpp"
#include "support/attention/growing_cache.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

/// The second sequence begins later, so that sequences are never alike.
constexpr std::int64_t second_begins = 23;

/// With a sanitizer few steps and heads: small windows, so that tokens leave them soon.
constexpr std::int64_t steps = sanitized ? 75 : 200;

template <class K, class V>
void replay_while_growing(attention_case c, bool bulk, std::uint64_t seed) {
  CAPTURE(bulk);
  random_source random(seed);
  c.key_dim = c.value_dim = 64;
  c.page_tokens = 32;
  c.lengths = {0, 0};
  growing_cache<K, V> cache(c, steps, random);
  REQUIRE(cache.keys.ok);
  REQUIRE(cache.values.ok);
  attention_run run(c, random);

  launch_sequence graph;
  cache.keys.capture(graph);
  cache.values.capture(graph);
  auto const view = cache.view();
  auto const request = run.request(cache.shape);
  auto const plan = cuda::plan_attention(view, request, 3);
  aligned_bytes scratch = new_scratch(plan);
  graph.push_back(
      [=, &scratch] { return cuda::attention(view, request, plan, scratch.data(), nullptr); });

  kernels::simt::bulk_copies = bulk;
  auto const schedules = kernels::simt::all_schedules();
  for (std::int64_t step = 0; step < steps; ++step) {
    CAPTURE(step);
    kernels::simt::scoped_schedule const scope(
        schedules[static_cast<std::size_t>(step) % schedules.size()]);
    cache.begin_step([&](int i) { return i == 0 || step >= second_begins; });
    std::fill(run.output.begin(), run.output.end(), std::byte{0xFF});
    for (auto const& launch : graph) REQUIRE(launch() == cudaSuccess);
    require_exact(cache, run);
  }
  CHECK(cache.used_pages() >= 3);
}

attention_case growing(std::int32_t recent) {
  attention_case c{.heads = sanitized ? 1 : 2, .query_heads = sanitized ? 2 : 6};
  c.window = sanitized ? windows{0, recent / 2} : windows{32, recent};
  return c;
}

TEST_CASE("row codecs, of which a token leaves the windows at every step") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  replay_while_growing<row_codec<midrise<3>>, row_codec<midrise<2>>>(growing(33), false, seed);
}

TEST_CASE("values of which 32 tokens leave the window together, keys of which one does") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  attention_case c = growing(20);
  c.key_rotation = c.value_rotation = {};
  replay_while_growing<codec<symmetric<3, range::narrow>, axis::channel, 32>,
                       codec<hybrid<2, range::narrow>, axis::token, 32>>(c, true, seed);
}

}  // namespace
