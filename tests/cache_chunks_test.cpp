// SPDX-License-Identifier: Apache-2.0
// A sequence's bytes are a function of its tokens and its frozen transform, however they were fed.
#include "support/any_cache.hpp"
#include "support/catch.hpp"
#include "support/token_rows.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr int heads = 2, key_dim = 40, value_dim = 24;

cache_options options() {
  return {.heads = heads,
          .key_dim = key_dim,
          .value_dim = value_dim,
          .pages = 12,
          .page_tokens = 48,
          .prefill_room = 200};
}

/// The prefill at once, then the transform, then the rest `step` tokens at a time.
std::unique_ptr<any_cache> fed(any_scheme const& s, cache_options const& o, token_rows const& x,
                               std::int64_t prefill, std::int64_t step, transform const& t) {
  auto c = s.make(o);
  REQUIRE(c->add() == 0);
  REQUIRE(x.append_to(*c, 0, 0, prefill).code == status::ok);
  if (s.waits) REQUIRE(c->freeze(0, t) == status::ok);
  std::int64_t const end = x.k.tokens;
  for (std::int64_t i = prefill; i < end; i += step) {
    REQUIRE(x.append_to(*c, 0, i, std::min(step, end - i)).code == status::ok);
  }
  return c;
}

TEST_CASE("a prefill, then 200 tokens at once, by 7 and by 1 leave the same bytes") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : all_schemes()) {
    cache_options o = options();
    o.page_tokens = page_size(s);
    o.pages = 400 / o.page_tokens + 1;
    transform const t = s.random_transform(random, heads, key_dim);
    for (std::int64_t const prefill : {0, 1, 31, 32, 33, 127, 128, 129, 160}) {
      CAPTURE(s.name, prefill);
      token_rows const x(random, o, prefill + 200);
      auto const at_once = fed(s, o, x, prefill, 200, t);
      auto const memory = at_once->memory();
      for (std::int64_t const step : {7, 1}) {
        CAPTURE(step);
        REQUIRE((fed(s, o, x, prefill, step, t)->memory() == memory));
      }
      content const is = at_once->read(0);
      REQUIRE((is == at_once->expected(x.k, x.v, prefill + 200, s.waits ? &t : nullptr)));
      std::int64_t const excess = prefill + 200 - s.window.sink - s.window.recent;
      CHECK(is.keys.parts.sinks == s.window.sink);
      CHECK(is.keys.parts.recent() == s.window.recent + excess % s.key_step);
      CHECK(is.values.parts.recent() == s.window.recent + excess % s.value_step);
    }
  }
}

TEST_CASE("random splits, rooms and moments of freezing leave what the tokens alone determine") {
  std::uint64_t const seed = test_seed();
  random_source random(seed);
  for (any_scheme const& s : all_schemes()) {
    for (int trial = 0; trial < 4; ++trial) {
      CAPTURE(seed, s.name, trial);
      cache_options o = options();
      o.page_tokens = page_size(s) * random.between(1, 3);
      o.append_slots = random.between(0, 70);
      o.prefill_room = random.between(0, 300);
      o.window_type = trial % 2 == 0 ? dtype::f16 : dtype::bf16;
      o.alignment = 1 << random.between(0, 7);
      std::int64_t const total = random.between(1, 500);
      o.pages = static_cast<std::int32_t>(total / o.page_tokens + 1);
      transform const t = s.random_transform(random, heads, key_dim);
      token_rows const x(random, o, total, static_cast<dtype>(random.between(0, 2)));

      auto const c = s.make(o);
      REQUIRE(c->add() == 0);
      std::int64_t const freeze_at = random.between(0, o.prefill_room + s.window.sink);
      std::int64_t fed = 0;
      while (fed < total) {
        if (s.waits && !c->frozen(0) && fed >= freeze_at) REQUIRE(c->freeze(0, t) == status::ok);
        std::int64_t count = random.between(0, 1 << random.between(0, 8));
        if (s.waits && !c->frozen(0)) count = std::min(count, freeze_at - fed);
        count = std::min(count, total - fed);
        REQUIRE(x.append_to(*c, 0, fed, count).code == status::ok);
        fed += count;
        REQUIRE(c->length(0) == fed);
        if (random.between(0, 3) != 0 && fed != total) continue;
        bool const frozen = s.waits && c->frozen(0);
        REQUIRE((c->read(0) == c->expected(x.k, x.v, fed, frozen ? &t : nullptr)));
      }
      if (!s.waits || c->frozen(0)) continue;
      REQUIRE(c->freeze(0, t) == status::ok);
      REQUIRE((c->read(0) == c->expected(x.k, x.v, fed, &t)));
    }
  }
}

TEST_CASE("order and type of the source do not matter where its numbers are 16-bit") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : some_schemes()) {
    CAPTURE(s.name);
    cache_options o = options();
    o.page_tokens = page_size(s);
    o.pages = 300 / o.page_tokens + 1;
    transform const t = s.random_transform(random, heads, key_dim);
    token_rows x(random, o, 290);
    auto const plain = fed(s, o, x, 60, 290, t)->memory();
    x.keys = contiguous_memory(x.k, dtype::f32, order::head_major);
    x.values = strided(x.v, dtype::f32, {heads * (value_dim + 5), value_dim + 5, 0}, 1);
    REQUIRE((fed(s, o, x, 60, 290, t)->memory() == plain));
    // K and V of a token in one row.
    tensor_strides const packed{heads * (key_dim + value_dim), key_dim, 0};
    x.keys = strided(x.k, dtype::f16, packed);
    REQUIRE((fed(s, o, x, 60, 290, t)->memory() == plain));
  }
}

TEST_CASE("pages of an engine's plain tensor are a source as well") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  constexpr int page = 8;
  constexpr std::int64_t count = 4 * page;
  std::vector<std::int32_t> const places{3, 0, 2, 1};
  for (any_scheme const& s : some_schemes()) {
    CAPTURE(s.name);
    token_rows const x(random, options(), count, dtype::f32);
    rows pooled(heads, key_dim, count);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t const place = places[static_cast<std::size_t>(i / page)] * page + i % page;
      std::copy_n(&x.k.values[x.k.index(i, 0, 0)], heads * key_dim,
                  &pooled.values[pooled.index(place, 0, 0)]);
    }
    source_view keys = pooled.source();
    keys.map = make_tensor_layout(dtype::f32, heads, key_dim, count,
                                  {heads * key_dim, key_dim, page * heads * key_dim}, page);
    keys.table = {places.data(), 4};
    auto const c = s.make({.heads = heads,
                           .key_dim = key_dim,
                           .value_dim = value_dim,
                           .pages = 4,
                           .page_tokens = page_size(s)});
    REQUIRE(c->add() == 0);
    REQUIRE(c->append(0, keys, x.values.source()).code == status::ok);
    REQUIRE((c->read(0) == c->expected(x.k, x.v, count, nullptr)));

    // A table that is missing, too short, or points outside the pool is refused and changes
    // nothing.
    auto const memory = c->memory();
    std::vector<std::int32_t> const outside{0, 1, 2, 4};
    for (block_table const bad : {block_table{}, {places.data(), 3}, {outside.data(), 4}}) {
      keys.table = bad;
      REQUIRE(c->append(0, keys, x.values.source()).code != status::ok);
      REQUIRE((c->memory() == memory));
    }
  }
}

}  // namespace
