// SPDX-License-Identifier: Apache-2.0
// Parts of a sequence merge to the whole; empty sequences and batches of any lengths.
#include "support/any_cache.hpp"
#include "support/attention_oracle.hpp"
#include "support/catch.hpp"

#include <kvarts/attention.hpp>
#include <kvarts/paged_cache.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr float nothing = -std::numeric_limits<float>::infinity();

TEST_CASE("merging with an empty part is the identity, bit for bit") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  std::vector<float> const empty(7, 0.0f);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> part(7);
    for (float& x : part) x = static_cast<float>(std::exp(10.0 * random.normal()));
    float const part_lse = static_cast<float>(50.0 * random.normal());
    auto output = part;
    float lse = part_lse;
    merge_partials(output.data(), lse, empty.data(), nothing, 7);
    CHECK((output == part && lse == part_lse));
    output = empty;
    lse = nothing;
    merge_partials(output.data(), lse, part.data(), part_lse, 7);
    CHECK((output == part && lse == part_lse));
  }
  auto output = empty;
  float lse = nothing;
  merge_partials(output.data(), lse, empty.data(), nothing, 7);
  CHECK((output == empty && lse == nothing));
}

TEST_CASE("merging weighs by the log-sum-exps, of any size") {
  float output[] = {1.0f, -4.0f};
  float const other[] = {3.0f, 8.0f};
  float lse = 1000.0f;
  merge_partials(output, lse, other, 1000.0f + std::log(3.0f), 2);
  CHECK(output[0] == Catch::Approx(2.5));
  CHECK(output[1] == Catch::Approx(5.0));
  CHECK(lse == Catch::Approx(1000.0 + std::log(4.0)));
  merge_partials(output, lse, other, -1000.0f, 2);  // weighs nothing
  CHECK(output[0] == Catch::Approx(2.5));
  merge_partials(output, lse, other, 3e38f, 2);  // weighs all
  CHECK((output[0] == 3.0f && output[1] == 8.0f && lse == 3e38f));
}

TEST_CASE("two to five parts of the positions merge to the whole") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  constexpr int heads = 2, query_heads = 6, query_tokens = 3;
  for (any_scheme const& s : some_schemes()) {
    cache_options o{.heads = heads, .key_dim = 40, .value_dim = 24, .page_tokens = page_size(s)};
    o.pages = 400 / o.page_tokens + 1;
    auto const c = s.make(o);
    REQUIRE(c->add() == 0);
    if (s.waits) REQUIRE(c->freeze(0, s.random_transform(random, heads, 40)) == status::ok);
    REQUIRE(token_rows(random, o, 350).append_to(*c, 0, 0, 350).code == status::ok);
    std::vector<float> q(query_tokens * query_heads * 40);
    for (float& x : q) x = static_cast<float>(2.0 * random.normal());
    std::vector<float> whole(query_tokens * query_heads * 24), lse(query_tokens * query_heads);
    REQUIRE(c->attend(0, query_tokens, query_heads, q.data(), whole.data(), lse.data(), {}) ==
            status::ok);
    for (int parts = 2; parts <= 5; ++parts) {
      CAPTURE(s.name, parts);
      std::vector<std::int64_t> ends{0, 350};
      for (int i = 1; i < parts; ++i) ends.push_back(random.between(0, 350));  // may be empty
      std::sort(ends.begin(), ends.end());
      std::vector<float> merged(whole.size(), 0.0f), merged_lse(lse.size(), nothing);
      for (std::size_t part = 0; part + 1 < ends.size(); ++part) {
        std::vector<float> output(whole.size(), 777.0f), part_lse(lse.size());
        attention_options const options{.positions = {ends[part], ends[part + 1]}};
        REQUIRE(c->attend(0, query_tokens, query_heads, q.data(), output.data(), part_lse.data(),
                          options) == status::ok);
        for (std::size_t i = 0; i < lse.size(); ++i) {
          merge_partials(&merged[i * 24], merged_lse[i], &output[i * 24], part_lse[i], 24);
        }
      }
      for (std::size_t i = 0; i < whole.size(); ++i) {
        REQUIRE(merged[i] == Catch::Approx(whole[i]).margin(2e-6));
      }
      for (std::size_t i = 0; i < lse.size(); ++i) {
        REQUIRE(merged_lse[i] == Catch::Approx(lse[i]).margin(2e-6));
      }
    }
  }
}

/// A cache with these lengths; -1 for a slot that no sequence has.
template <codec_type K, codec_type V>
void check_batch(scheme<K, V> const& s, std::vector<std::int64_t> const& lengths) {
  random_source random(test_seed());
  CAPTURE(s.name.data(), lengths, test_seed());
  constexpr int heads = 2, query_heads = 4, key_dim = 24, value_dim = 12;
  int const slots = static_cast<int>(lengths.size());
  paged_cache c(s, {.heads = heads,
                    .key_dim = key_dim,
                    .value_dim = value_dim,
                    .sequences = slots,
                    .pages = 24,
                    .page_tokens = 96});
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    REQUIRE(c.add() == static_cast<int>(i));
    rows const k = normal_rows(random, heads, key_dim, std::max<std::int64_t>(lengths[i], 0));
    rows const v = normal_rows(random, heads, value_dim, k.tokens);
    REQUIRE(c.append(static_cast<int>(i), k.source(), v.source()).code == status::ok);
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0) REQUIRE(c.remove(static_cast<int>(i)) == status::ok);
  }
  for (int const query_tokens : {1, 3}) {
    auto const queries = static_cast<std::size_t>(query_tokens * query_heads);
    std::vector<float> q(lengths.size() * queries * key_dim);
    for (float& x : q) x = static_cast<float>(random.normal());
    // Nothing may be written behind the outputs.
    std::vector<float> output(lengths.size() * queries * value_dim + 5, 777.0f);
    std::vector<float> lse(lengths.size() * queries + 5, 777.0f);
    REQUIRE(attention(c.view(), query_tokens, query_heads, q.data(), output.data(), lse.data()) ==
            status::ok);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      std::vector<float> alone(queries * value_dim), lse_alone(queries);
      REQUIRE(attention(c.view().sequence(static_cast<int>(i)), query_tokens, query_heads,
                        &q[i * queries * key_dim], alone.data(), lse_alone.data()) == status::ok);
      auto const at = static_cast<std::ptrdiff_t>(i * queries);
      CHECK(std::equal(alone.begin(), alone.end(), output.begin() + at * value_dim));
      CHECK(std::equal(lse_alone.begin(), lse_alone.end(), lse.begin() + at));
      std::size_t const before =
          static_cast<std::size_t>(  // queries in front of the first token
              std::clamp<std::int64_t>(query_tokens - std::max<std::int64_t>(lengths[i], 0), 0,
                                       query_tokens)) *
          query_heads;
      for (std::size_t j = 0; j < before; ++j) {
        CHECK(lse_alone[j] == nothing);
        for (std::size_t d = 0; d < value_dim; ++d) CHECK(alone[j * value_dim + d] == 0.0f);
      }
      for (std::size_t j = before; j < queries; ++j) CHECK(std::isfinite(lse_alone[j]));
    }
    CHECK(std::count(output.end() - 5, output.end(), 777.0f) == 5);
    CHECK(std::count(lse.end() - 5, lse.end(), 777.0f) == 5);
  }
}

TEST_CASE("batches of any lengths, with empty sequences and none") {
  scheme<codec<affine<2>, axis::token, 32>, row_codec<midrise<3>>> const s{
      "mixed", key_transform::none, value_transform::rotated, {0, 33}};
  check_batch(s, {0, 5, 0, 1});
  check_batch(s, {0, 0, 0});
  check_batch(s, {0});
  check_batch(s, {300, 1, 33, -1, 97, 0, 64});
  check_batch(scheme<identity<bfloat16>, identity<half>>{"plain"}, {2, 0, 500, 31, -1, 32});
}

}  // namespace
