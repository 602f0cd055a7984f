// SPDX-License-Identifier: Apache-2.0
// Attention over codes and windows of every preset, against float64.
#include "support/any_cache.hpp"
#include "support/attention_oracle.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

std::vector<float> normal_numbers(random_source& random, std::size_t count) {
  std::vector<float> all(count);
  for (float& x : all) x = static_cast<float>(random.normal());
  return all;
}

/// A cache with one sequence, and attention on it.
struct setup {
  any_scheme s;
  cache_options o;
  transform t;
  token_rows x;
  std::int64_t tokens = 0;
  std::unique_ptr<any_cache> c;

  setup(any_scheme const& scheme, random_source& random, cache_options const& options,
        std::int64_t count)
      : s(scheme),
        o(options),
        t(s.random_transform(random, o.heads, o.key_dim)),
        x(random, o, count) {
    o.page_tokens = page_size(s);
    o.pages = static_cast<std::int32_t>(count / o.page_tokens + 2);
    o.prefill_room = 100;
    c = s.make(o);
    REQUIRE(c->add() == 0);
  }

  void append_to(std::int64_t length) {
    REQUIRE(x.append_to(*c, 0, tokens, length - tokens).code == status::ok);
    tokens = length;
  }
  void freeze() {
    if (s.waits) REQUIRE(c->freeze(0, t) == status::ok);
  }

  void check(random_source& random, int query_tokens, int query_heads,
             attention_options const& options = {}) const {
    CAPTURE(s.name, tokens, query_tokens, query_heads);
    auto const rows_of_q = static_cast<std::size_t>(query_tokens * query_heads);
    auto const q = normal_numbers(random, rows_of_q * static_cast<std::size_t>(o.key_dim));
    std::vector<float> output(rows_of_q * static_cast<std::size_t>(o.value_dim), 777.0f);
    std::vector<float> lse(rows_of_q, 777.0f);
    REQUIRE(c->attend(0, query_tokens, query_heads, q.data(), output.data(), lse.data(), options) ==
            status::ok);
    auto const exact = expected_attention(s, *c, x, tokens, o.window_type, t, query_tokens,
                                          query_heads, q, options);
    double largest = 0.0;
    for (std::size_t i = 0; i < output.size(); ++i) {
      largest = std::max(largest, std::fabs(double(output[i]) - exact.output[i]));
    }
    CHECK(largest < 1e-5);  // of values about 1
    for (std::size_t i = 0; i < lse.size(); ++i) {
      CHECK(double(lse[i]) == Catch::Approx(exact.lse[i]).margin(1e-5));
    }
  }
};

constexpr cache_options usual{.heads = 3, .key_dim = 40, .value_dim = 24};

TEST_CASE("every preset, before and after its transform is frozen, as it grows") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : all_schemes()) {
    setup x(s, random, usual, 420);
    x.append_to(70);
    x.check(random, 2, 6);
    x.freeze();
    x.check(random, 1, 3);
    for (std::int64_t const length : {100, 161, 162, 420}) {
      x.append_to(length);
      x.check(random, 1, 6);
    }
    x.check(random, 40, 3);  // causal, over codes, both windows and steps of both kinds
  }
}

TEST_CASE("scale, soft cap, sliding window, and a part of the positions") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : some_schemes()) {
    setup x(s, random, usual, 300);
    x.freeze();
    x.append_to(300);
    x.check(random, 5, 6, {.scale = 0.3f});
    x.check(random, 5, 6, {.scale = -1.0f});
    x.check(random, 5, 6, {.soft_cap = 0.7f});
    x.check(random, 5, 6, {.scale = 2.0f, .soft_cap = 30.0f});
    for (std::int64_t const sliding : {1, 2, 31, 96, 97, 130, 299, 300, 5000}) {
      x.check(random, 3, 3, {.sliding_window = sliding});
    }
    x.check(random, 3, 3, {.positions = {0, 33}});
    x.check(random, 3, 3, {.positions = {20, 171}});
    x.check(random, 3, 3, {.soft_cap = 2.0f, .sliding_window = 120, .positions = {100, 290}});
    x.check(random, 3, 3, {.positions = {299, 1000}});  // the first two queries see nothing
  }
}

TEST_CASE("keys and values of unlike head_dim, windows of bf16") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : some_schemes()) {
    setup mla(s, random, {.heads = 1, .key_dim = 192, .value_dim = 128, .window_type = dtype::bf16},
              250);
    mla.freeze();
    mla.append_to(250);
    mla.check(random, 2, 16);
    setup wide(s, random, {.heads = 1, .key_dim = 576, .value_dim = 512}, 200);
    wide.freeze();
    wide.append_to(200);
    wide.check(random, 1, 4);
  }
}

TEST_CASE("a dense rotation of keys") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  auto const dense = random_orthonormal(random, usual.key_dim).floats();
  any_scheme s = scheme_named("turboquant_calibrated");
  s.key_rotation.dense = dense.data();
  setup x(s, random, usual, 300);
  x.freeze();
  x.append_to(300);
  x.check(random, 3, 9);
}

}  // namespace
