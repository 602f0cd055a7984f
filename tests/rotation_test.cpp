// SPDX-License-Identifier: Apache-2.0
// The rotation: its definition, its inverse, and the products that it leaves as they are.
#include "support/catch.hpp"
#include "support/plain_rotation.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr int dims[] = {1, 2, 46, 64, 80, 96, 100, 128, 192, 256, 512, 576, 1024};
constexpr rotation kinds[] = {{1, 1}, {1, 12345}, {2, 1}, {3, 7}};

/// Integers of a few bits: every sum and every power of two is exact.
rows integer_rows(random_source& random, int head_dim, std::int64_t tokens, int largest) {
  rows x(1, head_dim, tokens);
  for (float& v : x.values) v = static_cast<float>(random.between(-largest, largest));
  return x;
}

/// Rows in coded space, as the identity codec stores them in fp16.
rows rotated_rows(rows const& x, rotation const& r) {
  using C = identity<half>;
  layout const m = make_row_records<C>(x.heads, x.head_dim, x.tokens, 1);
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
  view<C> const v{bytes.data(), m, {}};
  transform_view const t{nullptr, nullptr, 0, r};
  REQUIRE(encode(v, x.source(), {0, x.tokens}, t).code == status::ok);
  rows y(x.heads, x.head_dim, x.tokens);
  REQUIRE(decode_coded(v, y.target(), {0, x.tokens}) == status::ok);
  return y;
}

std::vector<double> row_of(rows const& x, std::int64_t token) {
  auto const begin = x.values.begin() + static_cast<int>(x.index(token, 0, 0));
  return {begin, begin + x.head_dim};
}

TEST_CASE("rows are rotated as the definition says") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int const d : dims) {
    for (rotation const& r : kinds) {
      if (r.rounds == 3 && block_bits(d) > 4) continue;  // more bits than fp16 has
      CAPTURE(d, r.rounds, r.seed);
      rows x = integer_rows(random, d, 3, 1);
      rows const y = rotated_rows(x, r);
      for (std::int64_t t = 0; t < 3; ++t) {
        auto const expected = plain_rotate(row_of(x, t), r.seed, r.rounds, false);
        // Integers of up to 2^rounds lg B: fp16 rounds those of two rounds of large blocks.
        double const slack = r.rounds * block_bits(d) <= 10 ? 0.0 : 0x1p-11;
        for (int i = 0; i < d; ++i) {
          double const e = expected[static_cast<std::size_t>(i)];
          REQUIRE(std::fabs(y.at(t, 0, i) - e) <= slack * std::fabs(e));
        }
      }
    }
  }
}

TEST_CASE("queries and rows keep their product exactly") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int const d : dims) {
    for (rotation const& r : {rotation{1, 1}, rotation{1, 99}}) {
      CAPTURE(d, r.seed);
      rows const k = integer_rows(random, d, 1, 1);
      rows const q = integer_rows(random, d, 1, 50);
      std::vector<float> folded(static_cast<std::size_t>(d));
      double const bias =
          fold_query({nullptr, nullptr, 0, r}, 0, d, q.values.data(), folded.data());
      auto const expected = plain_rotate(row_of(q, 0), r.seed, r.rounds, true);
      rows in_place = q;
      fold_query({nullptr, nullptr, 0, r}, 0, d, in_place.values.data(), in_place.values.data());
      REQUIRE(in_place.values == folded);
      rows const y = rotated_rows(k, r);
      double before = 0.0, after = 0.0;
      for (std::size_t i = 0; i < folded.size(); ++i) {
        REQUIRE(folded[i] == expected[i]);
        before += static_cast<double>(q.values[i]) * k.values[i];
        after += static_cast<double>(folded[i]) * y.values[i];
      }
      CHECK(bias == 0.0);
      CHECK(after == before);
    }
  }
}

TEST_CASE("unrotate takes rows back exactly") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int const d : dims) {
    for (rotation const& r : {rotation{1, 1}, rotation{1, 99}}) {
      CAPTURE(d, r.seed);
      rows const x = integer_rows(random, d, 4, 1);
      rows y = rotated_rows(x, r);
      for (int t = 0; t < 4; ++t) unrotate(r, d, y.values.data() + t * d);
      REQUIRE(y.values == x.values);
    }
  }
}

TEST_CASE("real numbers come back to rounding") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int const d : dims) {
    for (rotation const& r : kinds) {
      CAPTURE(d, r.rounds, r.seed);
      rows const q = normal_rows(random, 1, d, 1);
      std::vector<float> folded(q.values.size());
      fold_query({nullptr, nullptr, 0, r}, 0, d, q.values.data(), folded.data());
      auto const expected = plain_rotate(row_of(q, 0), r.seed, r.rounds, true);
      double length = 0.0;
      for (float const v : q.values) length += static_cast<double>(v) * v;
      double const scale = std::ldexp(std::sqrt(length), 1);
      for (std::size_t i = 0; i < folded.size(); ++i) {
        REQUIRE(std::fabs(folded[i] - expected[i]) <= 30 * 0x1p-24 * scale);
      }
    }
  }
}

TEST_CASE("products with rotated values are rotated back once") {
  random_source random(test_seed());
  using C = identity<half>;
  for (int const d : {46, 80, 96, 100, 128, 512}) {
    CAPTURE(d);
    rotation const r{1, 1};
    rows const x = integer_rows(random, d, 40, 1);
    layout const m = make_row_records<C>(1, d, 40, 1);
    std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
    view<C> const v{bytes.data(), m, {}};
    REQUIRE(encode(v, x.source(), {0, 40}, {nullptr, nullptr, 0, r}).code == status::ok);
    std::vector<float> p(40);
    for (float& w : p) w = static_cast<float>(random.between(-9, 9));
    std::vector<float> output(static_cast<std::size_t>(d));
    REQUIRE(gemv_pv(v, {0, 40}, 1, p.data(), output.data()) == status::ok);
    unrotate(r, d, output.data());
    for (int i = 0; i < d; ++i) {
      float expected = 0.0f;
      for (std::size_t t = 0; t < 40; ++t) expected += p[t] * x.at(static_cast<int>(t), 0, i);
      REQUIRE(output[static_cast<std::size_t>(i)] == expected);
    }
  }
}

template <int Bits>
void require_every_code(random_source& random, int head_dim, std::int64_t tokens) {
  using C = row_codec<midrise<Bits>>;
  CAPTURE(Bits, head_dim);
  rows const x = normal_rows(random, 1, head_dim, tokens);
  layout const m = make_row_records<C>(1, head_dim, tokens, 1);
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
  view<C> const v{bytes.data(), m, {}};
  transform_view const t{nullptr, nullptr, 0, {1, 1}};
  REQUIRE(encode(v, x.source(), {0, tokens}, t).code == status::ok);
  std::vector<int> seen(1 << Bits);
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(head_dim));
  for (std::int64_t i = 0; i < tokens; ++i) {
    load_codes(v, 0, i, codes.data());
    for (std::uint8_t const u : codes) ++seen[u];
  }
  CHECK(std::count(seen.begin(), seen.end(), 0) == 0);
}

TEST_CASE("every code of rotated rows occurs") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int const d : {80, 96}) {
    require_every_code<2>(random, d, 20);
    require_every_code<3>(random, d, 50);
    require_every_code<4>(random, d, 400);
    require_every_code<8>(random, d, 10000);
  }
}

}  // namespace
