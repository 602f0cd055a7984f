// SPDX-License-Identifier: Apache-2.0
// Norms folded into projections before a rotary embedding: scores stay, keys come out normalized.
#include "support/catch.hpp"
#include "support/random.hpp"

#include <kvarts/kvarts.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr int heads = 2, query_heads = 6, inputs = 10;

struct model {
  int head_dim;
  std::vector<float> w_q, w_k, b_q, b_k;

  model(random_source& random, int head_dim_) : head_dim(head_dim_) {
    auto const fill = [&](std::vector<float>& w, int count) {
      for (int i = 0; i < count; ++i) w.push_back(static_cast<float>(random.normal()));
    };
    fill(w_q, query_heads * head_dim * inputs);
    fill(w_k, heads * head_dim * inputs);
    fill(b_q, query_heads * head_dim);
    fill(b_k, heads * head_dim);
  }
};

/// (W x + b) of one head after RoPE at a position, in float64.
std::vector<double> project(std::vector<float> const& w, std::vector<float> const& b,
                            std::vector<double> const& x, int head, int head_dim, rope_pairs pairs,
                            int position) {
  std::vector<double> y(static_cast<std::size_t>(head_dim));
  for (int d = 0; d < head_dim; ++d) {
    auto const row = static_cast<std::size_t>(head * head_dim + d);
    double sum = b[row];
    for (std::size_t j = 0; j < inputs; ++j) sum += static_cast<double>(w[row * inputs + j]) * x[j];
    y[static_cast<std::size_t>(d)] = sum;
  }
  auto rotated = y;
  for (int i = 0; i < head_dim / 2; ++i) {
    bool const interleaved = pairs == rope_pairs::interleaved;
    auto const a = static_cast<std::size_t>(interleaved ? 2 * i : i);
    auto const c = static_cast<std::size_t>(interleaved ? 2 * i + 1 : i + head_dim / 2);
    double const angle = position * std::pow(10000.0, -2.0 * i / head_dim);
    rotated[a] = y[a] * std::cos(angle) - y[c] * std::sin(angle);
    rotated[c] = y[a] * std::sin(angle) + y[c] * std::cos(angle);
  }
  return rotated;
}

transform random_norms(random_source& random, int head_dim) {
  transform t{heads, head_dim, {}, {}, {}};
  for (int i = 0; i < heads * head_dim; ++i) {
    t.norm.push_back(static_cast<float>(std::exp(random.normal())));
  }
  return t;
}

double dot(std::vector<double> const& a, std::vector<double> const& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void check_folding(random_source& random, int head_dim, rope_pairs pairs) {
  CAPTURE(head_dim, pairs == rope_pairs::interleaved);
  model const before(random, head_dim);
  model after = before;
  transform t = random_norms(random, head_dim);
  auto const norms = t.norm;
  REQUIRE(fold_weights(t, pairs, query_heads, inputs, after.w_q.data(), after.w_k.data()) ==
          status::ok);
  auto const equalized = t.norm;
  REQUIRE(fold_weights(t, pairs, query_heads, 1, after.b_q.data(), after.b_k.data()) == status::ok);
  REQUIRE(t.norm == equalized);
  for (int h = 0; h < heads; ++h) {
    for (int d = 0; d < head_dim; ++d) {
      int const other = pairs == rope_pairs::interleaved ? (d % 2 == 0 ? d + 1 : d - 1)
                                                         : (d + head_dim / 2) % head_dim;
      auto const i = static_cast<std::size_t>(h * head_dim + d);
      auto const k = static_cast<std::size_t>(h * head_dim + other);
      REQUIRE(equalized[i] == std::max(norms[i], norms[k]));
    }
  }

  std::vector<double> x(inputs);
  for (double& v : x) v = random.normal();
  for (int i = 0; i < query_heads; ++i) {
    int const h = i / 3;
    auto const q = project(before.w_q, before.b_q, x, i, head_dim, pairs, 901);
    auto const k = project(before.w_k, before.b_k, x, h, head_dim, pairs, 17);
    auto const folded_q = project(after.w_q, after.b_q, x, i, head_dim, pairs, 901);
    auto const folded_k = project(after.w_k, after.b_k, x, h, head_dim, pairs, 17);
    double const bound = 1e-6 * std::sqrt(dot(q, q) * dot(k, k));
    REQUIRE(std::fabs(dot(folded_q, folded_k) - dot(q, k)) <= bound);
    // Keys are what the transform makes of them in any position.
    for (std::size_t d = 0; d < k.size(); ++d) {
      double const normalized = k[d] / equalized[static_cast<std::size_t>(h * head_dim) + d];
      REQUIRE(std::fabs(folded_k[d] - normalized) <= 1e-5);
    }
  }
}

TEST_CASE("scores stay the same for both pairings of RoPE") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int const head_dim : {2, 46, 64, 80, 100, 128}) {
    check_folding(random, head_dim, rope_pairs::interleaved);
    check_folding(random, head_dim, rope_pairs::half_split);
  }
}

TEST_CASE("partners are each other's") {
  for (int const head_dim : {2, 46, 128}) {
    for (rope_pairs const pairs : {rope_pairs::interleaved, rope_pairs::half_split}) {
      for (int d = 0; d < head_dim; ++d) {
        int const other = rope_partner(pairs, d, head_dim);
        REQUIRE(other != d);
        REQUIRE(other >= 0);
        REQUIRE(other < head_dim);
        REQUIRE(rope_partner(pairs, other, head_dim) == d);
      }
    }
  }
}

void require_refused(status code, transform t, int queries, int head_dim) {
  random_source random(1);
  model const before(random, head_dim);
  model after = before;
  auto const norms = t.norm;
  auto const found =
      fold_weights(t, rope_pairs::half_split, queries, inputs, after.w_q.data(), after.w_k.data());
  CHECK(to_string(found) == std::string(to_string(code)));
  CHECK(after.w_q == before.w_q);
  CHECK(after.w_k == before.w_k);
  CHECK((t.norm == norms || std::isnan(norms[0])));
}

TEST_CASE("what would not be exact is refused, and nothing is changed") {
  random_source random(test_seed());
  transform const good = random_norms(random, 20);
  transform t = good;
  t.center.assign(40, 0.0f);
  require_refused(status::bad_transform, t, query_heads, 20);
  t = good;
  t.rotate.rounds = 1;
  require_refused(status::bad_transform, t, query_heads, 20);
  t = good;
  t.norm.clear();
  require_refused(status::bad_transform, t, query_heads, 20);
  for (float const bad : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    t = good;
    t.norm[0] = bad;
    require_refused(status::bad_transform, t, query_heads, 20);
  }
  t = good;
  t.norm.pop_back();
  require_refused(status::bad_transform, t, query_heads, 20);
  for (int const queries : {0, -2, 1, 3, 5}) require_refused(status::bad_heads, good, queries, 20);
  require_refused(status::bad_head_dim, random_norms(random, 19), query_heads, 19);
}

}  // namespace
