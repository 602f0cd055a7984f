// SPDX-License-Identifier: Apache-2.0
// Centers and norms against two passes in float64 over the definition.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using Catch::Matchers::ContainsSubstring;

struct expected_transform {
  std::vector<double> center, norm;
};

double mean_of(std::vector<double> const& x) {
  double sum = 0.0;
  for (double const v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

double rms_about(std::vector<double> const& x, double center) {
  double sum = 0.0;
  for (double const v : x) sum += (v - center) * (v - center);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

/// By the definition, from all texts at once.
expected_transform expect(std::vector<rows> const& keys, std::vector<rows> const& queries) {
  expected_transform e;
  int const heads = keys[0].heads;
  for (int h = 0; h < heads; ++h) {
    for (int d = 0; d < keys[0].head_dim; ++d) {
      std::vector<double> k, q;
      for (rows const& text : keys) {
        for (std::int64_t t = 32; t < text.tokens; ++t) k.push_back(text.at(t, h, d));
      }
      for (rows const& text : queries) {
        for (std::int64_t t = 0; t < text.tokens; ++t) {
          for (int i = 0; i < text.heads; ++i) {
            if (i * heads / text.heads == h) q.push_back(text.at(t, i, d));
          }
        }
      }
      double const mu = mean_of(k);
      double const sd = rms_about(k, mu);
      double const qr = q.empty() ? 1.0 : rms_about(q, 0.0);
      e.center.push_back(mu);
      e.norm.push_back(sd > 0.0 && qr > 0.0 ? std::sqrt(sd / qr) : 1.0);
    }
  }
  return e;
}

void require_near(std::vector<float> const& found, std::vector<double> const& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    REQUIRE(std::fabs(found[i] - expected[i]) <= 1e-6 * std::max(std::fabs(expected[i]), 1e-3));
  }
}

/// Channels of very different centers and spreads.
rows keys_of(random_source& random, int heads, int head_dim, std::int64_t tokens) {
  rows k = normal_rows(random, heads, head_dim, tokens);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int h = 0; h < heads; ++h) {
      for (int d = 0; d < head_dim; ++d) {
        float const spread = std::ldexp(1.0f, d % 7 - 3);
        k.at(t, h, d) =
            k.at(t, h, d) * spread + (d % 5 == 0 ? 1e4f : 0.1f * static_cast<float>(d + h));
        if (t < 32) k.at(t, h, d) = 1e6f;  // sinks, which are left out
      }
    }
  }
  return k;
}

TEST_CASE("center and norm are those of the definition") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int const query_heads : {3, 9, 21}) {
    rows const k = keys_of(random, 3, 46, 300);
    rows const q = normal_rows(random, query_heads, 46, 50);
    transform const t = calibrate(k.source(), q.source());
    expected_transform const e = expect({k}, {q});
    require_near(t.center, e.center);
    require_near(t.norm, e.norm);
    CHECK(t.heads == 3);
    CHECK(t.head_dim == 46);
    CHECK(t.rotate == rotation{1, 1});
    CHECK_FALSE(check(t, 3, 46));
  }
}

TEST_CASE("several texts count as one, each without its first tokens") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  std::vector<rows> keys, queries;
  calibrator c(2, 20);
  for (std::int64_t const tokens : {33, 200, 20, 90}) {  // the third has no token that counts
    keys.push_back(keys_of(random, 2, 20, tokens));
    queries.push_back(normal_rows(random, 4, 20, tokens / 3));
    REQUIRE(c.add_keys(keys.back().source()) == status::ok);
    REQUIRE(c.add_queries(queries.back().source()) == status::ok);
  }
  transform const t = c.finish();
  expected_transform const e = expect(keys, queries);
  require_near(t.center, e.center);
  require_near(t.norm, e.norm);
}

TEST_CASE("a center of 1e4 leaves the deviation its digits") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  rows k = normal_rows(random, 1, 8, 500);
  for (float& v : k.values) v = 1e4f + 0.05f * v;
  calibrator c(1, 8);
  REQUIRE(c.add_keys(k.source()) == status::ok);
  transform const t = c.finish();
  expected_transform const e = expect({k}, {});
  require_near(t.center, e.center);
  require_near(t.norm, e.norm);
}

TEST_CASE("without queries the norm is the root of the deviation; zeros make it 1") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  rows k = normal_rows(random, 1, 4, 100);
  for (std::int64_t t = 0; t < 100; ++t) k.at(t, 0, 2) = 7.5f;  // constant
  rows const no_queries(2, 4, 0);
  transform const plain = calibrate(k.source(), no_queries.source());
  require_near(plain.norm, expect({k}, {}).norm);
  CHECK(plain.norm[2] == 1.0f);
  CHECK(plain.center[2] == 7.5f);

  rows const zeros(2, 4, 50);
  transform const unread = calibrate(k.source(), zeros.source());
  CHECK(unread.norm == std::vector<float>(4, 1.0f));
  require_near(unread.center, expect({k}, {}).center);

  rows one_unread = normal_rows(random, 2, 4, 50);
  for (std::int64_t t = 0; t < 50; ++t) one_unread.at(t, 0, 1) = one_unread.at(t, 1, 1) = 0.0f;
  transform const t = calibrate(k.source(), one_unread.source());
  require_near(t.norm, expect({k}, {one_unread}).norm);
  CHECK(t.norm[1] == 1.0f);
}

TEST_CASE("a channel that is constant in the calibration may move in the data") {
  random_source random(test_seed());
  rows k = normal_rows(random, 1, 64, 200);
  for (std::int64_t t = 0; t < 200; ++t) k.at(t, 0, 5) = -1234.0f;
  transform const t = calibrate(k.source(), normal_rows(random, 1, 64, 50).source());
  rows data = normal_rows(random, 1, 64, 40);
  for (std::int64_t i = 0; i < 40; ++i) data.at(i, 0, 5) = -1234.0f + static_cast<float>(i);
  using C = codec<affine<4>, axis::token>;
  layout const m = make_head_tiles<C>(1, 64, 40);
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
  view<C> const v{bytes.data(), m, {}};
  transform unrotated = t;
  unrotated.rotate = {};
  REQUIRE(encode(v, data.source(), {0, 40}, unrotated.view()).code == status::ok);
  rows y(1, 64, 40);
  REQUIRE(decode(v, y.target(), {0, 40}, unrotated.view()) == status::ok);
  for (std::int64_t i = 0; i < 40; ++i) {
    REQUIRE(std::fabs(y.at(i, 0, 5) - data.at(i, 0, 5)) <= 31.0f / 15.0f / 2.0f + 0.02f);
  }
}

TEST_CASE("too few keys give the rotation alone") {
  rows const k(2, 8, 32, 3.0f);
  transform const t = calibrate(k.source(), rows(2, 8, 5, 1.0f).source(), {2, 9});
  CHECK(t.center.empty());
  CHECK(t.norm.empty());
  CHECK(t.rotate == rotation{2, 9});
  CHECK_FALSE(check(t, 2, 8));
}

TEST_CASE("keys and queries that do not fit are refused") {
  rows const k(4, 8, 40, 1.0f);
  auto const sentence = [&](rows const& q) -> std::optional<std::string> {
    try {
      calibrate(k.source(), q.source());
    } catch (error const& e) {
      return e.what();
    }
    return std::nullopt;
  };
  CHECK_THAT(sentence(rows(10, 8, 5)).value_or(""), ContainsSubstring("10 heads"));
  CHECK_THAT(sentence(rows(10, 8, 5)).value_or(""), ContainsSubstring("keys of 4 heads"));
  CHECK(sentence(rows(8, 16, 5)).has_value());
  CHECK_FALSE(sentence(rows(8, 8, 5)).has_value());
  calibrator c(4, 8);
  CHECK(c.add_keys(rows(4, 9, 40).source()) == status::bad_head_dim);
  CHECK(c.add_keys(rows(3, 8, 40).source()) == status::bad_heads);
  CHECK(c.add_queries(rows(3, 8, 40).source()) == status::bad_heads);
  CHECK(calibrator(0, 8).add_queries(rows(3, 8, 40).source()) == status::bad_heads);
  CHECK(c.add_queries(rows(8, 7, 40).source()) == status::bad_head_dim);
}

TEST_CASE("numbers that are not finite count as encoders count them") {
  rows k(1, 4, 64, 2.0f);
  k.at(40, 0, 0) = std::numeric_limits<float>::quiet_NaN();
  k.at(41, 0, 1) = std::numeric_limits<float>::infinity();
  rows as_counted = k;
  as_counted.at(40, 0, 0) = 0.0f;
  as_counted.at(41, 0, 1) = std::numeric_limits<float>::max();
  calibrator c(1, 4);
  REQUIRE(c.add_keys(k.source()) == status::ok);
  transform const t = c.finish();
  CHECK_FALSE(check(t, 1, 4));
  require_near(t.center, expect({as_counted}, {}).center);
}

TEST_CASE("InnerQ's norm is the root of the largest magnitude, sinks included") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  rows k = normal_rows(random, 3, 46, 70);
  k.at(0, 1, 7) = -900.0f;
  for (std::int64_t t = 0; t < 70; ++t) k.at(t, 2, 45) = t < 60 ? -0.0f : 5.0f;
  transform const t = innerq_norm(k.source(), 60);
  REQUIRE(t.norm.size() == 3 * 46);
  CHECK(t.center.empty());
  CHECK(t.rotate.rounds == 0);
  for (int h = 0; h < 3; ++h) {
    for (int d = 0; d < 46; ++d) {
      float largest = 0.0f;
      for (std::int64_t i = 0; i < 60; ++i) largest = std::max(largest, std::fabs(k.at(i, h, d)));
      float const expected = largest > 0.0f ? std::sqrt(largest) : 1.0f;
      REQUIRE(t.norm[static_cast<std::size_t>(h * 46 + d)] == expected);
    }
  }
  CHECK(t.norm[1 * 46 + 7] == 30.0f);
  CHECK(t.norm[2 * 46 + 45] == 1.0f);
}

}  // namespace
