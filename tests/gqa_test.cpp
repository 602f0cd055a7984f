// SPDX-License-Identifier: Apache-2.0
// Query head i reads KV head floor(i * KV heads / query heads), for ratios that real models have.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr int head_dim = 20;
constexpr std::int64_t tokens = 64;  // a power of two: means are exact

/// Codecs that give integers up to 8 back exactly when they are constant.
using exact_codecs =
    type_list<identity<half>, identity<bfloat16>, codec<affine<2>, axis::channel>,
              codec<affine<4>, axis::token>, codec<symmetric<3, range::searched>, axis::token>,
              codec<symmetric<2, range::narrow>, axis::channel>,
              codec<hybrid<2, range::narrow>, axis::token>>;

/// Keys or values of KV head h constant h + 1.
template <class C>
std::vector<std::byte> encode_heads(layout const& m, int heads) {
  rows x(heads, head_dim, tokens);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int h = 0; h < heads; ++h) {
      for (int d = 0; d < head_dim; ++d) x.at(t, h, d) = static_cast<float>(h + 1);
    }
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
  REQUIRE(encode(view<C>{bytes.data(), m, {}}, x.source(), {0, tokens}).code == status::ok);
  return bytes;
}

template <class C>
void check_heads(int query_heads, int heads) {
  CAPTURE(std::string(std::string_view(C::name())), query_heads, heads);
  layout const m = make_head_tiles<C>(heads, head_dim, tokens);
  auto const bytes = encode_heads<C>(m, heads);
  view<C, std::byte const> const v{bytes.data(), m, {}};

  auto const count = static_cast<std::size_t>(query_heads);
  std::vector<float> const p(count * tokens, 1.0f / tokens);
  std::vector<float> output(count * head_dim, 777.0f);
  REQUIRE(gemv_pv(v, {0, tokens}, query_heads, p.data(), output.data()) == status::ok);
  for (int i = 0; i < query_heads; ++i) {
    for (int d = 0; d < head_dim; ++d) {
      REQUIRE(output[static_cast<std::size_t>(i * head_dim + d)] ==
              static_cast<float>(i * heads / query_heads + 1));
    }
  }

  std::vector<float> const q(count * head_dim, 0.5f);
  std::vector<float> scores(count * tokens, 777.0f);
  REQUIRE(gemv_qk(v, {0, tokens}, query_heads, q.data(), nullptr, scores.data()) == status::ok);
  for (int i = 0; i < query_heads; ++i) {
    for (std::size_t t = 0; t < tokens; ++t) {
      REQUIRE(scores[static_cast<std::size_t>(i) * tokens + t] ==
              static_cast<float>(i * heads / query_heads + 1) * 10.0f);
    }
  }
}

TEST_CASE("query heads read their KV head") {
  for (auto const& [query_heads, heads] :
       {std::pair{9, 3}, {40, 8}, {24, 4}, {28, 4}, {14, 2}, {64, 4}, {71, 1}, {8, 8}, {1, 1}}) {
    detail::for_each_type(exact_codecs{}, [&](auto tag) {
      check_heads<typename decltype(tag)::type>(query_heads, heads);
    });
  }
}

TEST_CASE("query heads that KV heads do not divide are refused") {
  using C = row_codec<int8_head>;
  layout const m = make_head_tiles<C>(4, head_dim, tokens);
  auto const bytes = encode_heads<C>(m, 4);
  view<C> const v{const_cast<std::byte*>(bytes.data()), m, {}};
  std::vector<float> const in(64 * tokens);
  std::vector<float> out(64 * tokens, 777.0f);
  for (int const query_heads : {10, 1, 2, 3, 5, 0, -4}) {
    CAPTURE(query_heads);
    CHECK(gemv_qk(v, {0, tokens}, query_heads, in.data(), nullptr, out.data()) ==
          status::bad_heads);
    CHECK(gemv_pv(v, {0, tokens}, query_heads, in.data(), out.data()) == status::bad_heads);
  }
  CHECK(out == std::vector<float>(64 * tokens, 777.0f));
}

}  // namespace
