// SPDX-License-Identifier: Apache-2.0
// Key transforms: scores do not change, and what no row can pass through is refused by name.
#include "support/catch.hpp"
#include "support/plain_rotation.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using Catch::Matchers::ContainsSubstring;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Any transform of the geometry; `exact` draws integers and powers of two.
transform random_transform(random_source& random, int heads, int head_dim, bool exact) {
  transform t{heads, head_dim, {}, {}, {1, 1}};
  for (int i = 0; i < heads * head_dim; ++i) {
    double const center = exact ? random.between(-3, 3) : 5.0 * random.normal();
    double const norm = exact ? std::ldexp(1.0, random.between(-1, 1)) : 0.2 + random.uniform();
    t.center.push_back(static_cast<float>(center));
    t.norm.push_back(static_cast<float>(norm));
  }
  return t;
}

/// `k` through the transform, stored by a codec whose error does not matter here.
template <class C>
struct stored {
  layout map;
  std::vector<std::byte> bytes;

  stored(rows const& k, transform_view const& t)
      : map(make_row_records<C>(k.heads, k.head_dim, k.tokens, 1)),
        bytes(static_cast<std::size_t>(map.size_bytes())) {
    REQUIRE(encode(coded(), k.source(), {0, k.tokens}, t).code == status::ok);
  }
  view<C> coded() { return {bytes.data(), map, {}}; }
};

TEST_CASE("q'.y + q.center is q.k, exactly where the numbers are exact") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int const head_dim : {46, 64, 80, 96, 100, 128, 576}) {
    CAPTURE(head_dim);
    transform const t = random_transform(random, 2, head_dim, true);
    rows k(2, head_dim, 5);
    for (float& v : k.values) v = static_cast<float>(random.between(-3, 3));
    stored<identity<half>> keys(k, t.view());
    rows y(2, head_dim, 5);
    REQUIRE(decode_coded(keys.coded(), y.target(), {0, 5}) == status::ok);
    for (int h = 0; h < 2; ++h) {
      std::vector<float> q(static_cast<std::size_t>(head_dim)), folded(q.size());
      for (float& v : q) v = static_cast<float>(random.between(-20, 20));
      double const bias = fold_query(t.view(), h, head_dim, q.data(), folded.data());
      for (std::int64_t token = 0; token < 5; ++token) {
        double plain = 0.0, coded = bias;
        for (int d = 0; d < head_dim; ++d) {
          auto const i = static_cast<std::size_t>(d);
          plain += static_cast<double>(q[i]) * k.at(token, h, d);
          coded += static_cast<double>(folded[i]) * y.at(token, h, d);
        }
        REQUIRE(coded == plain);
      }
    }
  }
}

TEST_CASE("rows enter the codec as R((k - center) / norm), each operation rounded") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int const head_dim : {46, 80, 96, 100, 128}) {
    CAPTURE(head_dim);
    transform t = random_transform(random, 1, head_dim, false);
    rows const k = normal_rows(random, 1, head_dim, 9);
    for (bool const rotated : {false, true}) {
      t.rotate.rounds = rotated ? 1 : 0;
      stored<identity<half>> keys(k, t.view());
      rows y(1, head_dim, 9);
      REQUIRE(decode_coded(keys.coded(), y.target(), {0, 9}) == status::ok);
      for (std::int64_t token = 0; token < 9; ++token) {
        std::vector<double> row;
        double largest = 0.0;
        for (int d = 0; d < head_dim; ++d) {
          auto const i = static_cast<std::size_t>(d);
          float const centered = k.at(token, 0, d) - t.center[i];
          row.push_back(centered / t.norm[i]);
          largest = std::max(largest, std::fabs(row.back()));
        }
        if (rotated) row = plain_rotate(row, 1, 1, false);
        for (int d = 0; d < head_dim; ++d) {
          double const e = row[static_cast<std::size_t>(d)];
          double const sums = rotated ? 8 * 0x1p-24 * 16 * largest : 0x1p-24 * std::fabs(e);
          REQUIRE(std::fabs(y.at(token, 0, d) - e) <= 0x1p-11 * std::fabs(e) + sums + 0x1p-25);
        }
      }
    }
  }
}

TEST_CASE("decode takes rows back to model space") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  transform const t = random_transform(random, 2, 96, false);
  rows const k = normal_rows(random, 2, 96, 20);
  stored<row_codec<midrise<8>>> keys(k, t.view());
  rows back(2, 96, 20);
  REQUIRE(decode(keys.coded(), back.target(), {0, 20}, t.view()) == status::ok);
  double error = 0.0, size = 0.0;
  for (std::size_t i = 0; i < k.values.size(); ++i) {
    error += std::pow(static_cast<double>(back.values[i]) - k.values[i], 2);
    size += std::pow(static_cast<double>(k.values[i]), 2);
  }
  CHECK(error / size < 0.01);  // keys are small against their center here
}

TEST_CASE("a center of 1e4 costs a signal of 1 nothing") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  constexpr int head_dim = 80;
  rows const signal = normal_rows(random, 1, head_dim, 200);
  rows k = signal;
  transform t{1, head_dim, {}, {}, {1, 1}};
  for (int d = 0; d < head_dim; ++d) t.center.push_back(d % 3 == 0 ? 1e4f : -0.5f);
  for (std::int64_t token = 0; token < 200; ++token) {
    for (int d = 0; d < head_dim; ++d) k.at(token, 0, d) += t.center[static_cast<std::size_t>(d)];
  }
  std::vector<float> q(head_dim), folded(head_dim);
  for (float& v : q) v = static_cast<float>(random.normal());
  double const bias = fold_query(t.view(), 0, head_dim, q.data(), folded.data());
  double exact_bias = 0.0;
  for (std::size_t d = 0; d < q.size(); ++d) exact_bias += static_cast<double>(q[d]) * t.center[d];
  CHECK(std::fabs(bias - exact_bias) <= 1e-14 * 1e5 * head_dim);

  stored<row_codec<midrise<4>>> keys(k, t.view());
  std::vector<float> scores(200);
  REQUIRE(gemv_qk(keys.coded(), {0, 200}, 1, folded.data(), nullptr, scores.data()) == status::ok);
  double error = 0.0, size = 0.0;
  for (std::int64_t token = 0; token < 200; ++token) {
    double exact = -exact_bias;
    for (int d = 0; d < head_dim; ++d) {
      exact += static_cast<double>(q[static_cast<std::size_t>(d)]) * k.at(token, 0, d);
    }
    error += std::pow(scores[static_cast<std::size_t>(token)] - exact, 2);
    size += exact * exact;
  }
  CHECK(error / size < 0.02);  // 4 bits: .0098 of the signal's energy

  // The bias enters in float64: one rounding of a score of 1e5.
  std::vector<float> with_bias(200);
  REQUIRE(gemv_qk(keys.coded(), {0, 200}, 1, folded.data(), &bias, with_bias.data()) == status::ok);
  for (std::size_t i = 0; i < 200; ++i) {
    REQUIRE(with_bias[i] == static_cast<float>(static_cast<double>(scores[i]) + bias));
  }
}

void require_refused(transform const& t, int heads, int head_dim, std::string const& part) {
  problem const p = check(t, heads, head_dim);
  CHECK(p.code == status::bad_transform);
  CHECK_THAT(p.sentence(), ContainsSubstring(part));
}

TEST_CASE("norms and centers that are not finite and positive are refused by name") {
  transform const good{2, 3, {1, 2, 3, 4, 5, 6}, {1, 1, 1, 1, 1, 1}, {1, 1}};
  CHECK_FALSE(check(good, 2, 3));
  for (float const bad : {0.0f, -0.0f, -1.0f, -1e-30f, nan, infinity, -infinity}) {
    transform t = good;
    t.norm[4] = bad;
    require_refused(t, 2, 3, "the norm of head 1, channel 1 is not finite and positive");
  }
  for (float const bad : {nan, infinity, -infinity}) {
    transform t = good;
    t.center[2] = bad;
    require_refused(t, 2, 3, "the center of head 0, channel 2 is not finite");
  }
  transform t = good;
  t.rotate.rounds = 5;
  require_refused(t, 2, 3, "0 to 4 rounds, not 5");
  t.rotate.rounds = -1;
  require_refused(t, 2, 3, "not -1");
  t = good;
  t.norm = {1e-40f, 1, 1, 3e38f, 1, 1};
  CHECK_FALSE(check(t, 2, 3));
}

TEST_CASE("a transform of another geometry is refused") {
  transform const t{2, 3, {1, 2, 3, 4, 5, 6}, {1, 1, 1, 1, 1, 1}, {}};
  require_refused(t, 3, 3, "2 KV heads where the cache has 3");
  require_refused(t, 2, 4, "head_dim 3 where the cache has 4");
  transform cut = t;
  cut.norm.pop_back();
  require_refused(cut, 2, 3, "5 numbers where 6 are needed");
  cut = t;
  cut.center.push_back(0);
  require_refused(cut, 2, 3, "7 numbers where 6 are needed");
}

TEST_CASE("heads may lie apart") {
  random_source random(test_seed());
  transform const t = random_transform(random, 2, 20, false);
  std::vector<float> center(60, nan), norm(60, nan);
  for (std::size_t i = 0; i < 40; ++i) {
    center[i / 20 * 40 + i % 20] = t.center[i];
    norm[i / 20 * 40 + i % 20] = t.norm[i];
  }
  rows const k = normal_rows(random, 2, 20, 7);
  stored<row_codec<int8_head>> packed(k, t.view());
  stored<row_codec<int8_head>> apart(k, {center.data(), norm.data(), 40, t.rotate});
  CHECK(apart.bytes == packed.bytes);
}

}  // namespace
