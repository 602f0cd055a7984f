// SPDX-License-Identifier: Apache-2.0
// Products over any number of tokens: what lies behind the last one never shows.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr int head_dim = 12, query_heads = 2;

/// One of each kind.
using kinds =
    type_list<identity<half>, row_codec<int8_head>, row_codec<midrise<3>>,
              codec<symmetric<3, range::searched>, axis::channel>,
              codec<symmetric<2, range::narrow>, axis::token>, codec<affine<2>, axis::token>,
              codec<affine<4>, axis::channel>, codec<hybrid<2, range::narrow>, axis::token>>;

struct products {
  std::vector<float> scores;
  std::vector<float> output;
};

std::vector<float> ramp(std::size_t count) {
  std::vector<float> v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = static_cast<float>(i % 7) - 3.25f;
  return v;
}

template <class C>
products multiply(view<C> v, token_range r) {
  auto const columns = static_cast<std::size_t>(query_heads * r.size());
  products found{std::vector<float>(columns, 777.0f),
                 std::vector<float>(query_heads * head_dim, 777.0f)};
  auto const q = ramp(query_heads * head_dim);
  auto const p = ramp(columns);
  REQUIRE(gemv_qk(v, r, query_heads, q.data(), nullptr, found.scores.data()) == status::ok);
  REQUIRE(gemv_pv(v, r, query_heads, p.data(), found.output.data()) == status::ok);
  return found;
}

std::vector<std::int64_t> counts(int group) {
  std::vector<std::int64_t> all{1, group - 1, group, group + 1, 255, 256, 257};
  for (int r = 0; r < 16; ++r) all.push_back(16 * 3 + r);
  return all;
}

TEST_CASE("memory behind the last token never shows") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  rows const x = normal_rows(random, 1, head_dim, 257);
  detail::for_each_type(kinds{}, [&](auto tag) {
    using C = typename decltype(tag)::type;
    for (std::int64_t const tokens : counts(16)) {
      CAPTURE(std::string(std::string_view(C::name())), tokens);
      layout const m = make_head_tiles<C>(1, head_dim, 288, {.group = 16});
      source_view source = x.source();
      source.map.tokens = tokens;
      products first;
      for (unsigned const before : {0x00u, 0xFFu, 0x7Eu}) {  // 0x7E7E is a NaN in fp16
        std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()),
                                     static_cast<std::byte>(before));
        view<C> const v{bytes.data(), m, {}};
        REQUIRE(encode(v, source, {0, tokens}).code == status::ok);
        auto const found = multiply(v, {0, tokens});
        if (before == 0) first = found;
        REQUIRE(found.scores == first.scores);
        REQUIRE(found.output == first.output);
      }
    }
  });
}

TEST_CASE("equal weights give the mean of exactly the tokens of the range") {
  // Token t holds t + 1 everywhere: the identity codec keeps integers up to 2048.
  using C = identity<half>;
  rows x(1, head_dim, 257);
  for (std::int64_t t = 0; t < 257; ++t) {
    for (int d = 0; d < head_dim; ++d) x.at(t, 0, d) = static_cast<float>(t + 1);
  }
  layout const m = make_row_records<C>(1, head_dim, 300, 4);
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()), std::byte{0xFF});
  view<C> const v{bytes.data(), m, {}};
  REQUIRE(encode(v, x.source(), {0, 257}).code == status::ok);
  for (std::int64_t const tokens : counts(16)) {
    CAPTURE(tokens);
    std::vector<float> const p(static_cast<std::size_t>(tokens), 1.0f);
    std::vector<float> sum(head_dim);
    REQUIRE(gemv_pv(v, {0, tokens}, 1, p.data(), sum.data()) == status::ok);
    for (float const s : sum) REQUIRE(s == static_cast<float>(tokens * (tokens + 1) / 2));
  }
}

TEST_CASE("no tokens: no scores, an output of zeros") {
  detail::for_each_type(kinds{}, [&](auto tag) {
    using C = typename decltype(tag)::type;
    layout const m = make_head_tiles<C>(1, head_dim, 32);
    std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()), std::byte{0xFF});
    view<C> const v{bytes.data(), m, {}};
    for (token_range const r : {token_range{0, 0}, {7, 7}, {32, 32}}) {
      auto const found = multiply(v, r);
      CHECK(found.scores.empty());
      CHECK(found.output == std::vector<float>(query_heads * head_dim, 0.0f));
    }
    layout const none = make_head_tiles<C>(1, head_dim, 0);
    CHECK(multiply(view<C>{nullptr, none, {}}, {0, 0}).output ==
          std::vector<float>(query_heads * head_dim, 0.0f));
  });
}

TEST_CASE("parts add up to the whole, with scales that grow from group to group") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  struct split {
    std::int64_t tokens;
    int group, parts;
  };
  for (split const s : {split{64, 16, 4}, {96, 64, 4}, {96, 64, 3}, {96, 32, 7}}) {
    rows x = normal_rows(random, 1, head_dim, s.tokens);
    for (std::int64_t t = 0; t < s.tokens; ++t) {
      for (int d = 0; d < head_dim; ++d) {
        x.at(t, 0, d) = std::ldexp(x.at(t, 0, d), static_cast<int>(t / s.group));
      }
    }
    detail::for_each_type(kinds{}, [&](auto tag) {
      using C = typename decltype(tag)::type;
      CAPTURE(std::string(std::string_view(C::name())), s.tokens, s.group, s.parts);
      layout const m = make_head_tiles<C>(1, head_dim, s.tokens, {.group = s.group});
      std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
      view<C> const v{bytes.data(), m, {}};
      REQUIRE(encode(v, x.source(), {0, s.tokens}).code == status::ok);
      auto const p = ramp(static_cast<std::size_t>(s.tokens));
      std::vector<float> whole(head_dim), part(head_dim);
      std::vector<double> sum(head_dim), magnitudes(head_dim);
      REQUIRE(gemv_pv(v, {0, s.tokens}, 1, p.data(), whole.data()) == status::ok);
      for (std::int64_t k = 0; k < s.parts; ++k) {
        token_range const r{k * s.tokens / s.parts, (k + 1) * s.tokens / s.parts};
        REQUIRE(gemv_pv(v, r, 1, p.data() + r.begin, part.data()) == status::ok);
        for (std::size_t d = 0; d < head_dim; ++d) sum[d] += part[d];
      }
      rows y(1, head_dim, s.tokens);
      REQUIRE(decode(v, y.target(), {0, s.tokens}) == status::ok);
      for (std::int64_t t = 0; t < s.tokens; ++t) {
        for (int d = 0; d < head_dim; ++d) {
          magnitudes[static_cast<std::size_t>(d)] +=
              std::fabs(static_cast<double>(p[static_cast<std::size_t>(t)]) * y.at(t, 0, d));
        }
      }
      for (std::size_t d = 0; d < head_dim; ++d) {
        REQUIRE(std::fabs(sum[d] - whole[d]) <= 80.0 * 0x1p-24 * magnitudes[d]);
      }
    });
  }
}

}  // namespace
