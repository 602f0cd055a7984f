// SPDX-License-Identifier: Apache-2.0
// Keys as models with key biases have them: N(0, 1), four channels moved by 450, a first token 100
// times as large. A scale shared by channels loses the signal unless a center takes the bias away.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr int head_dim = 128;
constexpr std::int64_t tokens = 1024, sinks = 32;  // sinks stay in 16 bits

rows biased_keys(random_source& random) {
  rows k = normal_rows(random, 1, head_dim, tokens);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int const d : {3, 40, 77, 120}) k.at(t, 0, d) += 450.0f;
  }
  for (int d = 0; d < head_dim; ++d) k.at(0, 0, d) *= 100.0f;
  return k;
}

double correlation(std::vector<double> const& a, std::vector<double> const& b) {
  auto const n = static_cast<double>(a.size());
  double sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sa += a[i];
    sb += b[i];
    saa += a[i] * a[i];
    sbb += b[i] * b[i];
    sab += a[i] * b[i];
  }
  return (sab - sa * sb / n) / std::sqrt((saa - sa * sa / n) * (sbb - sb * sb / n));
}

/// Mean over queries of the correlation of coded with exact scores, over coded tokens.
template <class C>
double score_correlation(rows const& k, transform_view const& t) {
  layout const m = make_head_tiles<C>(1, head_dim, tokens);
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
  view<C> const v{bytes.data(), m, {}};
  REQUIRE(encode(v, k.source(), {0, tokens}, t).code == status::ok);
  random_source random(99);
  constexpr int queries = 20;
  double sum = 0.0;
  for (int i = 0; i < queries; ++i) {
    std::vector<float> q(head_dim), folded(head_dim), scores(tokens - sinks);
    for (float& x : q) x = static_cast<float>(random.normal());
    double const bias = fold_query(t, 0, head_dim, q.data(), folded.data());
    REQUIRE(gemv_qk(v, {sinks, tokens}, 1, folded.data(), &bias, scores.data()) == status::ok);
    std::vector<double> exact;
    for (std::int64_t token = sinks; token < tokens; ++token) {
      double score = 0.0;
      for (int d = 0; d < head_dim; ++d) {
        score += static_cast<double>(q[static_cast<std::size_t>(d)]) * k.at(token, 0, d);
      }
      exact.push_back(score);
    }
    sum += correlation(exact, {scores.begin(), scores.end()});
  }
  return sum / queries;
}

TEST_CASE("scores of biased keys survive four bits with groups of tokens, or with a center") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  rows const k = biased_keys(random);
  calibrator c(1, head_dim);
  REQUIRE(c.add_keys(k.source()) == status::ok);
  transform const calibrated = c.finish();
  transform centered = calibrated;
  centered.norm.clear();
  centered.rotate = {};

  using per_channel = codec<affine<4>, axis::token, 32>;
  using per_token = codec<affine<4>, axis::channel, 32>;
  CHECK(score_correlation<per_channel>(k, {}) >= 0.995);
  double const without = score_correlation<per_token>(k, {});
  CHECK(without < 0.2);
  CHECK(without > 0.05);
  CHECK(score_correlation<per_token>(k, centered.view()) >= 0.995);
  CHECK(score_correlation<row_codec<midrise<4>>>(k, {nullptr, nullptr, 0, {1, 1}}) < 0.7);
  CHECK(score_correlation<row_codec<midrise<4>>>(k, calibrated.view()) >= 0.99);
  CHECK(score_correlation<row_codec<int8_head>>(k, {}) < 0.7);
  CHECK(score_correlation<row_codec<int8_head>>(k, centered.view()) >= 0.9999);
}

}  // namespace
