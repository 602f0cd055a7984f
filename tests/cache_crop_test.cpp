// SPDX-License-Identifier: Apache-2.0
// Cropping to any length, then appending, equals a sequence that never had the tokens between; or
// it is refused because the rows that the windows need are gone.
#include "support/any_cache.hpp"
#include "support/catch.hpp"
#include "support/token_rows.hpp"

#include <algorithm>
#include <cstdint>

namespace {

using namespace kvarts;
using namespace kvarts::test;

cache_options options(any_scheme const& s) {
  cache_options o{.heads = 1, .key_dim = 20, .value_dim = 12, .sequences = 2};
  o.page_tokens = page_size(s);
  o.pages = 700 / o.page_tokens + 4;
  o.append_slots = 20;
  o.prefill_room = 90;
  return o;
}

/// `x` up to `tokens`, then `y` from there on.
rows joined(rows const& x, rows const& y, std::int64_t tokens) {
  rows r = y;
  std::copy_n(x.values.begin(), x.index(tokens, 0, 0), r.values.begin());
  return r;
}

TEST_CASE("crop to every length, then append") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : all_schemes()) {
    auto const o = options(s);
    auto const c = s.make(o);
    transform const t = s.random_transform(random, o.heads, o.key_dim);
    transform const* const frozen = s.waits ? &t : nullptr;
    token_rows const x(random, o, 300), y(random, o, 331);
    int const whole = c->add();
    if (s.waits) REQUIRE(c->freeze(whole, t) == status::ok);
    REQUIRE(x.append_to(*c, whole, 0, 300).code == status::ok);
    auto const before = c->read(whole);
    int done = 0;
    for (std::int64_t length = 0; length <= 300; ++length) {
      CAPTURE(s.name, length);
      int const i = c->fork(whole);
      REQUIRE(i == 1);
      auto const memory = c->memory();
      status const is = c->crop(i, length);
      if (is == status::not_recoverable) {
        REQUIRE((c->memory() == memory));
      } else {
        REQUIRE(is == status::ok);
        REQUIRE((c->read(i) == c->expected(x.k, x.v, length, frozen)));
        std::int64_t const count = random.between(0, 30) * (length % 2 == 0 ? 1 : 0) + 1;
        REQUIRE(y.append_to(*c, i, length, count).code == status::ok);
        rows const k = joined(x.k, y.k, length), v = joined(x.v, y.v, length);
        REQUIRE((c->read(i) == c->expected(k, v, length + count, frozen)));
        ++done;
      }
      REQUIRE((c->read(whole) == before));
      REQUIRE(c->remove(i) == status::ok);

      // Sinks are never lost; nor is what no 16-bit window needs; nor what was appended just now.
      bool const no_windows = s.window.recent == 0 && s.key_step == 1 && s.value_step == 1;
      if (length <= s.window.sink || no_windows || length == 300) REQUIRE(is == status::ok);
      // The ring holds the windows and at least `append_slots` more.
      if (300 - length <= o.append_slots) REQUIRE(is == status::ok);
    }
    CAPTURE(s.name);
    CHECK(done > o.append_slots);
  }
}

TEST_CASE("cropping back and forth, down to nothing") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : some_schemes()) {
    CAPTURE(s.name);
    auto const o = options(s);
    auto const c = s.make(o);
    transform const t = s.random_transform(random, o.heads, o.key_dim);
    token_rows const x(random, o, 300);
    REQUIRE(c->add() == 0);
    if (s.waits) {  // before the transform is frozen every length can be had again
      REQUIRE(x.append_to(*c, 0, 0, 80).code == status::ok);
      REQUIRE(c->crop(0, 33) == status::ok);
      REQUIRE((c->read(0) == c->expected(x.k, x.v, 33, nullptr)));
      REQUIRE(c->crop(0, 0) == status::ok);
      REQUIRE(c->freeze(0, t) == status::ok);
    }
    for (int round = 0; round < 4; ++round) {
      REQUIRE(x.append_to(*c, 0, 0, 300).code == status::ok);
      REQUIRE((c->read(0) == c->expected(x.k, x.v, 300, s.waits ? &t : nullptr)));
      for (std::int64_t const length : {299, 290, 285}) REQUIRE(c->crop(0, length) == status::ok);
      REQUIRE(x.append_to(*c, 0, 285, 15).code == status::ok);
      REQUIRE((c->read(0) == c->expected(x.k, x.v, 300, s.waits ? &t : nullptr)));
      REQUIRE(c->crop(0, 0) == status::ok);
      CHECK(c->free_pages() == o.pages);
      CHECK((!s.waits || c->frozen(0)));
    }
  }
}

}  // namespace
