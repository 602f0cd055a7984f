// SPDX-License-Identifier: Apache-2.0
// Attention at the ends of the number range, and over any count of tokens with anything behind
// them.
#include "support/attention_oracle.hpp"
#include "support/catch.hpp"
#include "support/make_any_scheme.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

struct result {
  std::vector<float> output;
  std::vector<float> lse;

  bool finite() const {
    auto const is_finite = [](float x) { return std::isfinite(x); };
    return std::all_of(output.begin(), output.end(), is_finite) &&
           std::all_of(lse.begin(), lse.end(), is_finite);
  }
};

/// Attention of one token over rows that enter a new cache at once; the transform is frozen first.
result attend(any_scheme const& s, token_rows const& x, std::vector<float> const& q) {
  cache_options o{.heads = x.k.heads, .key_dim = x.k.head_dim, .value_dim = x.v.head_dim};
  o.page_tokens = page_size(s);
  o.pages = static_cast<std::int32_t>(x.k.tokens / o.page_tokens + 2);
  auto const c = s.make(o);
  REQUIRE(c->add() == 0);
  transform t{o.heads, o.key_dim, {}, {}, s.key_rotation};
  if (s.waits) REQUIRE(c->freeze(0, t) == status::ok);
  REQUIRE(x.append_to(*c, 0, 0, x.k.tokens).code == status::ok);
  auto const query_heads = q.size() / static_cast<std::size_t>(o.key_dim);
  result r{std::vector<float>(query_heads * static_cast<std::size_t>(o.value_dim)),
           std::vector<float>(query_heads)};
  REQUIRE(c->attend(0, 1, static_cast<int>(query_heads), q.data(), r.output.data(), r.lse.data(),
                    {}) == status::ok);
  return r;
}

TEST_CASE("values of 60000 over 4096 tokens come back, and nothing overflows") {
  constexpr int head_dim = 32;
  rows const k(1, head_dim, 4096, 1.0f), v(1, head_dim, 4096, 60000.0f);
  token_rows const x(k, v, dtype::f16);
  std::vector<float> const q(head_dim, 0.0f);
  for (any_scheme const& s : all_schemes()) {
    CAPTURE(s.name);
    auto const r = attend(s, x, q);
    CHECK(r.finite());
    CHECK(r.lse[0] == Catch::Approx(std::log(4096.0)));
    // Constant groups come back within the rounding of their parameters, except where the highest
    // level is a step below the largest value; rows are as good as their quantizer.
    std::string_view const name = s.values.name;
    bool const rows_of_codes = name.starts_with("midrise") || name.starts_with("codebook");
    double const step = name.ends_with("wide") ? 60000.0 / (1 << (s.values.bits - 1)) : 0.0;
    bool const bf16 = name == "bf16" || name == "int8_head";
    double squares = 0.0;
    for (float const y : r.output) {
      double const error = std::fabs(double(y) - 60000.0);
      squares += error * error;
      if (!rows_of_codes) CHECK(error <= 60000.0 * (bf16 ? 0x1p-8 : 0.001) + step);
    }
    // An fp16 row length saturates: this one is 339411.
    if (!name.ends_with("_f16")) CHECK(std::sqrt(squares / head_dim) < 60000.0 * 0.5);
  }
}

TEST_CASE("queries and keys of 300 in all of 128 channels") {
  random_source random(test_seed());
  constexpr int head_dim = 128;
  rows const k(1, head_dim, 300, 300.0f);
  token_rows const x(k, normal_rows(random, 1, head_dim, 300), dtype::f16);
  float const highest = *std::max_element(x.v.values.begin(), x.v.values.end());
  for (float const sign : {1.0f, -1.0f}) {
    std::vector<float> const q(2 * head_dim, sign * 300.0f);
    for (any_scheme const& s : all_schemes()) {
      CAPTURE(s.name, sign);
      auto const r = attend(s, x, q);
      CHECK(r.finite());
      // Products are 300 * 300 * 128; wide levels fall a step short of them, rows err as they do.
      double const score = double(sign) * 300.0 * 300.0 * 128.0 / std::sqrt(128.0);
      CHECK(double(r.lse[0]) / score > 0.6);
      CHECK(double(r.lse[0]) / score < 1.7);
      for (float const y : r.output) CHECK(std::fabs(y) < 2.5f * highest);
    }
  }
}

TEST_CASE("a center of 10000 does not drown the signal") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  constexpr int heads = 2, head_dim = 64;
  rows k = normal_rows(random, heads, head_dim, 200);
  // fp16 has steps of 8 there.
  for (float& value : k.values) value = 10000.0f + 8.0f * std::round(value);
  token_rows const x(k, normal_rows(random, heads, head_dim, 200), dtype::f16);
  transform t{heads, head_dim, std::vector<float>(heads * head_dim, 10000.0f), {}, {1, 1}};
  std::vector<float> q(4 * head_dim);
  for (float& value : q) value = static_cast<float>(random.normal());

  any_scheme plain = make_any_scheme(scheme<identity<half>, identity<half>>{
      "plain", key_transform::calibrated, value_transform::rotated, {8, 20}});
  any_scheme coded = make_any_scheme(scheme<row_codec<midrise<8>>, row_codec<midrise<8>>>{
      "coded", key_transform::calibrated, value_transform::rotated, {0, 0}});
  for (any_scheme const& s : {plain, coded}) {
    CAPTURE(s.name);
    cache_options const o{
        .heads = heads, .key_dim = head_dim, .value_dim = head_dim, .pages = 1, .page_tokens = 224};
    auto const c = s.make(o);
    REQUIRE(c->add() == 0);
    REQUIRE(c->freeze(0, t) == status::ok);
    REQUIRE(x.append_to(*c, 0, 0, 200).code == status::ok);
    result r{std::vector<float>(4 * head_dim), std::vector<float>(4)};
    REQUIRE(c->attend(0, 1, 4, q.data(), r.output.data(), r.lse.data(), {}) == status::ok);
    auto const exact = expected_attention(s, *c, x, 200, dtype::f16, t, 1, 4, q);
    for (std::size_t i = 0; i < exact.output.size(); ++i) {
      CHECK(std::fabs(double(r.output[i]) - exact.output[i]) < 2e-5);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(double(r.lse[i]) == Catch::Approx(exact.lse[i]).epsilon(1e-7));
    }
  }
}

/// One of K or V in memory of an engine's own, which held `fill` everywhere before.
template <codec_type Codec>
struct own_memory {
  static constexpr std::int64_t pages = 12, page_tokens = 32, ring_tokens = 48;
  layout map;
  std::vector<std::byte> pool, sinks, ring;
  detail::side<Codec> side;

  own_memory(rows const& x, std::int64_t tokens, windows w, block_table table, rotation const& r,
             std::byte fill)
      : map(make_pages<Codec>(x.heads, x.head_dim, pages, page_tokens)),
        pool(static_cast<std::size_t>(map.size_bytes()), fill),
        sinks(row_bytes(x, w.sink), fill),
        ring(row_bytes(x, ring_tokens), fill),
        side{{pool.data(), map, table},
             {rows_of(x, sinks, w.sink), rows_of(x, ring, ring_tokens)},
             {nullptr, nullptr, 0, r},
             w} {
    REQUIRE(detail::append_side(side, slice(x.source(), 0, tokens), 0, true).code == status::ok);
  }

  static std::size_t row_bytes(rows const& x, std::int64_t tokens) {
    return static_cast<std::size_t>(tokens * x.heads * x.head_dim * 2);
  }
  static target_view rows_of(rows const& x, std::vector<std::byte>& bytes, std::int64_t tokens) {
    return make_tensor(reinterpret_cast<half*>(bytes.data()), x.heads, x.head_dim, tokens);
  }
  window_view<std::byte const> window() const { return {side.window.sinks, side.window.recents}; }
};

TEST_CASE("any count of tokens: the output does not see what lies behind them") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  constexpr int heads = 2, head_dim = 24, query_heads = 4;
  using keys = codec<affine<2>, axis::token, 16>;
  using values = row_codec<midrise<3>>;
  constexpr windows w{16, 21};
  rows const k = normal_rows(random, heads, head_dim, 290);
  rows const v = normal_rows(random, heads, head_dim, 290);
  std::vector<float> q(query_heads * head_dim), zero(q.size(), 0.0f);
  for (float& x : q) x = static_cast<float>(random.normal());
  std::vector<std::int32_t> const table{7, 3, 11, 0, 5, 1, 9, 2, 10};
  block_table const pages{table.data(), static_cast<std::int64_t>(table.size())};

  std::vector<std::int64_t> counts{1, 15, 16, 17, 36, 37, 38, 52, 53, 255, 256, 257};
  for (std::int64_t r = 0; r < 16; ++r) counts.push_back(272 + r);
  for (std::int64_t const tokens : counts) {
    std::vector<float> first;
    for (auto const fill : {std::byte{0}, std::byte{0xFF}, std::byte{0x7E}}) {  // 0x7E7E: a NaN
      CAPTURE(tokens, fill);
      own_memory<keys> const own_k(k, tokens, w, pages, {}, fill);
      own_memory<values> const own_v(v, tokens, w, pages, {1, 1}, fill);
      sequence_view<keys, values> const s{own_k.side.codes,
                                          own_v.side.codes,
                                          own_k.window(),
                                          own_v.window(),
                                          partition_after(tokens, w, 16),
                                          partition_after(tokens, w, 1),
                                          {},
                                          {1, 1}};
      std::vector<float> output(q.size()), lse(query_heads);
      REQUIRE(attention(s, 1, query_heads, q.data(), output.data(), lse.data()) == status::ok);
      output.insert(output.end(), lse.begin(), lse.end());
      if (first.empty()) first = output;
      CHECK((output == first));
      // Exactly so many tokens are seen.
      REQUIRE(attention(s, 1, query_heads, zero.data(), output.data(), lse.data()) == status::ok);
      CHECK(double(lse[0]) == Catch::Approx(std::log(static_cast<double>(tokens))).margin(1e-6));
    }
  }
}

}  // namespace
