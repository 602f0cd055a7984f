// SPDX-License-Identifier: Apache-2.0
// Which KV head a query head reads, with the head counts of real models.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/attention.hpp>
#include <kvarts/cache.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr int head_dim = 20;
constexpr std::int64_t tokens = 200;

/// Schemes that give small integers back exactly when a group is constant; windows from none to
/// all.
constexpr auto exact_schemes = [] {
  using half_rows = identity<half>;
  using by_token = codec<affine<2>, axis::token, 32>;
  using by_channel = codec<affine<2>, axis::channel, 32>;
  using searched = codec<symmetric<3, range::searched>, axis::token, 32>;
  return std::tuple{scheme<half_rows, half_rows>{"fp16"},
                    scheme<by_token, by_channel>{.name = "kivi", .window = {0, 128}},
                    scheme<by_channel, searched>{.name = "searched", .window = {32, 96}},
                    scheme<by_token, by_token>{.name = "all in windows", .window = {64, 300}}};
}();

/// Keys of KV head h are `key` times h + 1, values h + 1.
template <codec_type K, codec_type V>
cache<K, V> cache_of_heads(scheme<K, V> const& s, int heads, float key) {
  rows k(heads, head_dim, tokens), v(heads, head_dim, tokens);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int h = 0; h < heads; ++h) {
      for (int d = 0; d < head_dim; ++d) {
        k.at(t, h, d) = key * static_cast<float>(h + 1);
        v.at(t, h, d) = static_cast<float>(h + 1);
      }
    }
  }
  cache<K, V> c(s, tokens, {.heads = heads, .key_dim = head_dim});
  REQUIRE(c.append(k.source(), v.source()).code == status::ok);
  return c;
}

std::pair<int, int> const head_counts[] = {{9, 3},  {40, 8}, {24, 4}, {28, 4}, {14, 2},
                                           {64, 4}, {71, 1}, {1, 1},  {8, 8},  {17, 17}};

TEST_CASE("query head i reads KV head floor(i * H_kv / H_q), exactly") {
  for (auto const& [query_heads, heads] : head_counts) {
    std::apply(
        [&, query_heads = query_heads, heads = heads](auto const&... schemes) {
          (
              [&](auto const& s) {
                CAPTURE(s.name.data(), query_heads, heads);
                auto const c = cache_of_heads(s, heads, 0.25f);
                auto const count = static_cast<std::size_t>(2 * query_heads);
                std::vector<float> const q(count * head_dim, 0.125f);
                std::vector<float> output(count * head_dim, 777.0f), lse(count);
                REQUIRE(attention(c.view(), 2, query_heads, q.data(), output.data(), lse.data()) ==
                        status::ok);
                int wrong = 0;
                for (std::size_t i = 0; i < count; ++i) {
                  int const query_head = static_cast<int>(i) % query_heads;
                  auto const expected = static_cast<float>(query_head * heads / query_heads + 1);
                  for (std::size_t d = 0; d < head_dim; ++d) {
                    wrong += output[i * head_dim + d] == expected ? 0 : 1;
                  }
                  // All scores are q.k / sqrt(D) = 20 * 0.125 * 0.25 * (h + 1) / sqrt(20).
                  double const seen = static_cast<double>(tokens) - (i < count / 2 ? 1 : 0);
                  double const score = 0.625 * static_cast<double>(expected) / std::sqrt(20.0);
                  CHECK(double(lse[i]) == Catch::Approx(score + std::log(seen)).epsilon(1e-6));
                }
                CHECK(wrong == 0);
              }(schemes),
              ...);
        },
        exact_schemes);
  }
}

TEST_CASE("query heads that KV heads do not divide are refused, and nothing is written") {
  auto const s = std::get<1>(exact_schemes);
  std::pair<int, int> const refused[] = {{10, 4}, {3, 9}, {0, 1}, {-4, 4}, {7, 2}};
  for (auto const& [query_heads, heads] : refused) {
    CAPTURE(query_heads, heads);
    auto const c = cache_of_heads(s, heads, 1.0f);
    std::vector<float> const q(16 * head_dim, 1.0f);
    std::vector<float> output(16 * head_dim, 777.0f), lse(16, 777.0f);
    CHECK(attention(c.view(), 1, query_heads, q.data(), output.data(), lse.data()) ==
          status::bad_heads);
    CHECK((output == std::vector<float>(output.size(), 777.0f)));
    CHECK((lse == std::vector<float>(lse.size(), 777.0f)));
  }
  auto const c = cache_of_heads(s, 2, 1.0f);
  std::vector<float> output(2 * head_dim, 777.0f);
  CHECK(attention(c.view(), -1, 2, output.data(), output.data(), nullptr) == status::bad_tokens);

  // A block table that lacks coded positions.
  auto view = c.view();
  view.keys.table = {};
  CHECK(attention(view, 1, 2, output.data(), output.data(), nullptr) == status::bad_page);
  view = c.view();
  std::int32_t const missing = -1;
  view.values.table = {&missing, 1};
  CHECK(attention(view, 1, 2, output.data(), output.data(), nullptr) == status::bad_page);
  view.values.table = {&missing, 0};
  CHECK(attention(view, 1, 2, output.data(), output.data(), nullptr) == status::bad_tokens);
  CHECK((output == std::vector<float>(output.size(), 777.0f)));
}

}  // namespace
