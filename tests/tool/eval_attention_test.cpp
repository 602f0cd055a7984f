// SPDX-License-Identifier: Apache-2.0
#include "eval_attention.hpp"

#include "support/catch.hpp"
#include "support/random.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tool;

using rows = std::vector<float>;

rows random_rows(std::int64_t count, int head_dim, random_source& random) {
  rows numbers(static_cast<std::size_t>(count * head_dim));
  for (float& x : numbers) x = static_cast<float>(random.normal());
  return numbers;
}

/// One query over the first n tokens, from the definitions; token t reads coded keys where
/// `k_begin <= t < k_end`, coded values likewise.
struct oracle {
  int head_dim;
  rows const &q, &k, &v, &coded_k, &coded_v;

  double score(std::int64_t i, std::int64_t t, bool coded) const {
    rows const& keys = coded ? coded_k : k;
    double sum = 0;
    for (int d = 0; d < head_dim; ++d) {
      sum += static_cast<double>(q[static_cast<std::size_t>(i * head_dim + d)]) *
             keys[static_cast<std::size_t>(t * head_dim + d)];
    }
    return sum / std::sqrt(head_dim);
  }

  std::vector<double> weights(std::int64_t i, std::int64_t n, token_range coded) const {
    std::vector<double> w;
    double total = 0;
    for (std::int64_t t = 0; t < n; ++t) {
      w.push_back(std::exp(score(i, t, t >= coded.begin && t < coded.end)));
      total += w.back();
    }
    for (double& x : w) x /= total;
    return w;
  }

  std::vector<double> output(std::vector<double> const& w, token_range coded) const {
    std::vector<double> o(static_cast<std::size_t>(head_dim));
    for (std::size_t t = 0; t < w.size(); ++t) {
      auto const token = static_cast<std::int64_t>(t);
      rows const& values = token >= coded.begin && token < coded.end ? coded_v : v;
      for (std::size_t d = 0; d < o.size(); ++d) o[d] += w[t] * values[t * o.size() + d];
    }
    return o;
  }
};

/// A case of the test: extents, and what is read from codes.
struct sizes {
  int head_dim;
  std::int64_t tokens, queries;
  coded_region keys, values;
};

void check(sizes const& s, random_source& random) {
  CAPTURE(s.head_dim, s.tokens, s.queries, s.keys.sink, s.keys.recent, s.keys.step);
  rows const q = random_rows(s.queries, s.head_dim, random);
  rows const k = random_rows(s.tokens, s.head_dim, random);
  rows const v = random_rows(s.tokens, s.head_dim, random);
  rows const coded_k = random_rows(s.tokens, s.head_dim, random);
  rows const coded_v = random_rows(s.tokens, s.head_dim, random);
  oracle const expected{s.head_dim, q, k, v, coded_k, coded_v};

  score_errors scores;
  squared_error outputs;
  for (std::int64_t i = 0; i < s.queries; ++i) {
    std::int64_t const n = s.tokens - s.queries + i + 1;
    token_range const keys = s.keys.of(n);
    auto const exact = expected.weights(i, n, {});
    auto const coded = expected.weights(i, n, keys);
    for (std::size_t t = 0; t < exact.size(); ++t) {
      scores.kl += exact[t] * std::log(exact[t] / coded[t]);
    }
    for (std::int64_t t = keys.begin; t < keys.end; ++t, ++scores.pairs) {
      scores.squares += std::pow(expected.score(i, t, true) - expected.score(i, t, false), 2);
    }
    auto const o = expected.output(exact, {});
    auto const coded_o = expected.output(coded, s.values.of(n));
    for (std::size_t d = 0; d < o.size(); ++d) {
      outputs += {(coded_o[d] - o[d]) * (coded_o[d] - o[d]), o[d] * o[d]};
    }
  }

  attention_block block({q, s.tokens - s.queries, s.head_dim}, k, v);
  score_errors const measured = block.code_keys(coded_k, s.keys);
  squared_error const output = block.code_values(coded_v, s.values);
  CHECK(measured.pairs == scores.pairs);
  CHECK(measured.kl == Catch::Approx(scores.kl).epsilon(1e-10).margin(1e-12));
  CHECK(measured.squares == Catch::Approx(scores.squares).epsilon(1e-12));
  CHECK(output.error == Catch::Approx(outputs.error).epsilon(1e-10).margin(1e-20));
  CHECK(output.exact == Catch::Approx(outputs.exact).epsilon(1e-12));
}

}  // namespace

TEST_CASE("a coded region is whole steps between the windows") {
  coded_region const all{0, 0, 1};
  CHECK(all.of(0).size() == 0);
  CHECK(all.of(7).begin == 0);
  CHECK(all.of(7).end == 7);
  coded_region const groups{0, 0, 32};
  CHECK(groups.of(31).end == 0);
  CHECK(groups.of(32).end == 32);
  CHECK(groups.of(95).end == 64);
  coded_region const windows{32, 96, 32};
  CHECK(windows.of(20).size() == 0);
  CHECK(windows.of(20).end == 20);
  CHECK(windows.of(159).size() == 0);
  CHECK(windows.of(160).begin == 32);
  CHECK(windows.of(160).end == 64);
}

TEST_CASE("attention and its errors are those of the definitions") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  coded_region const all{0, 0, 1}, groups{0, 0, 32}, windows{4, 10, 1}, both{8, 3, 8};
  check({1, 1, 1, all, all}, random);
  check({64, 200, 16, all, all}, random);
  check({5, 64, 64, all, all}, random);
  check({13, 131, 17, groups, all}, random);
  check({8, 33, 3, all, groups}, random);
  check({16, 20, 20, groups, groups}, random);
  check({128, 77, 1, windows, both}, random);
  check({3, 150, 150, both, windows}, random);
}

TEST_CASE("nothing coded differently is no error, however large the scores") {
  random_source random(3);
  rows q = random_rows(4, 16, random);
  for (float& x : q) x *= 1000.0f;
  rows const k = random_rows(100, 16, random);
  rows const v = random_rows(100, 16, random);
  attention_block block({q, 96, 16}, k, v);
  score_errors const scores = block.code_keys(k, {0, 0, 1});
  CHECK(scores.kl == 0);
  CHECK(scores.squares == 0);
  squared_error const outputs = block.code_values(v, {0, 0, 1});
  CHECK(outputs.relative() == 0);
  CHECK(outputs.exact > 0);
  CHECK(squared_error{}.relative() == 0);
}

TEST_CASE("a coded weight of nearly nothing costs no more than 1e-300") {
  // Two tokens of one channel: the first has weight 1 and its coded key lies 5000 below.
  std::vector<float> const q{1}, k{1000, 0}, v{1, 2}, coded{-4000, 0};
  attention_block block({q, 1, 1}, k, v);
  CHECK(block.code_keys(coded, {0, 0, 1}).kl == Catch::Approx(-std::log(1e-300)));
  CHECK(block.code_keys(k, {0, 0, 1}).kl == 0);
}
