// SPDX-License-Identifier: Apache-2.0
// Sequences of a paged cache do not touch each other; pages are shared until one writes.
#include "support/any_cache.hpp"
#include "support/catch.hpp"
#include "support/token_rows.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

cache_options options(any_scheme const& s, std::int32_t sequences, std::int64_t tokens) {
  cache_options o{.heads = 2, .key_dim = 36, .value_dim = 20, .sequences = sequences};
  o.page_tokens = page_size(s);
  o.pages = static_cast<std::int32_t>(tokens / o.page_tokens) + 2;
  o.prefill_room = 160;
  return o;
}

/// A new sequence with its transform frozen.
int add_frozen(any_scheme const& s, any_cache& c, transform const& t) {
  int const i = c.add();
  REQUIRE(i >= 0);
  if (s.waits) REQUIRE(c.freeze(i, t) == status::ok);
  return i;
}

/// The pages of a sequence, by position: bytes of those that it has, nothing for the others.
std::vector<std::vector<std::byte>> pages_of(any_cache const& c, int sequence) {
  std::vector<std::vector<std::byte>> all;
  for (std::int32_t const page : c.table(sequence)) {
    all.push_back(page < 0 ? std::vector<std::byte>{} : c.page(page));
  }
  return all;
}

TEST_CASE("two sequences, of size 1 and 1000, are as if alone") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : some_schemes()) {
    CAPTURE(s.name);
    auto const o = options(s, 2, 1001);
    auto const c = s.make(o);
    transform const t = s.random_transform(random, o.heads, o.key_dim);
    int const large = add_frozen(s, *c, t), small = add_frozen(s, *c, t);
    token_rows const x(random, o, 1000), y(random, o, 1);
    REQUIRE(x.append_to(*c, large, 0, 500).code == status::ok);
    REQUIRE(y.append_to(*c, small, 0, 1).code == status::ok);
    REQUIRE(x.append_to(*c, large, 500, 500).code == status::ok);
    transform const* const frozen = s.waits ? &t : nullptr;
    REQUIRE((c->read(large) == c->expected(x.k, x.v, 1000, frozen)));
    REQUIRE((c->read(small) == c->expected(y.k, y.v, 1, frozen)));
  }
}

TEST_CASE("a fork shares pages; whoever writes gets its own and leaves the other's bytes alone") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : some_schemes()) {
    CAPTURE(s.name);
    auto const o = options(s, 3, 1500);
    auto const c = s.make(o);
    transform const t = s.random_transform(random, o.heads, o.key_dim);
    int const parent = add_frozen(s, *c, t);
    token_rows const x(random, o, 500), y(random, o, 500);
    REQUIRE(x.append_to(*c, parent, 0, 300).code == status::ok);
    std::int64_t const free = c->free_pages();
    int const child = c->fork(parent);
    REQUIRE(child == 1);
    CHECK(c->free_pages() == free);
    CHECK(c->table(child) == c->table(parent));
    REQUIRE((c->read(child) == c->read(parent)));

    auto const parent_table = c->table(parent);
    auto const parent_pages = pages_of(*c, parent);
    auto const parent_content = c->read(parent);
    REQUIRE(y.append_to(*c, child, 300, 200).code == status::ok);
    CHECK(c->table(parent) == parent_table);
    REQUIRE((pages_of(*c, parent) == parent_pages));
    REQUIRE((c->read(parent) == parent_content));

    auto const child_table = c->table(child);
    auto const child_pages = pages_of(*c, child);
    auto const child_content = c->read(child);
    REQUIRE(x.append_to(*c, parent, 300, 200).code == status::ok);
    CHECK(c->table(child) == child_table);
    REQUIRE((pages_of(*c, child) == child_pages));
    REQUIRE((c->read(child) == child_content));

    // Both hold what they were given; whole pages of the common past are still shared.
    transform const* const frozen = s.waits ? &t : nullptr;
    REQUIRE((c->read(parent) == c->expected(x.k, x.v, 500, frozen)));
    rows k = x.k, v = x.v;
    std::copy(y.k.values.begin() + static_cast<int>(k.index(300, 0, 0)), y.k.values.end(),
              k.values.begin() + static_cast<int>(k.index(300, 0, 0)));
    std::copy(y.v.values.begin() + static_cast<int>(v.index(300, 0, 0)), y.v.values.end(),
              v.values.begin() + static_cast<int>(v.index(300, 0, 0)));
    REQUIRE((c->read(child) == c->expected(k, v, 500, frozen)));
    std::int64_t const common =
        std::min(parent_content.keys.parts.coded_end, parent_content.values.parts.coded_end);
    for (std::int64_t p = 0; (p + 1) * o.page_tokens <= common; ++p) {
      CHECK(c->table(parent)[static_cast<std::size_t>(p)] ==
            c->table(child)[static_cast<std::size_t>(p)]);
    }
  }
}

TEST_CASE("pages of a common prefix and calibration are byte-equal") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : some_schemes()) {
    CAPTURE(s.name);
    auto const o = options(s, 3, 1800);
    auto const c = s.make(o);
    transform const t = s.random_transform(random, o.heads, o.key_dim);
    // Pages that were used before must not show what they held.
    int const past = add_frozen(s, *c, s.random_transform(random, o.heads, o.key_dim));
    token_rows const other(random, o, 700);
    REQUIRE(other.append_to(*c, past, 0, 700).code == status::ok);
    int const one = add_frozen(s, *c, t), two = add_frozen(s, *c, t);
    token_rows const prefix(random, o, 400), x(random, o, 90), y(random, o, 300);
    REQUIRE(prefix.append_to(*c, one, 0, 400).code == status::ok);
    REQUIRE(x.append_to(*c, one, 0, 90).code == status::ok);
    REQUIRE(c->remove(past) == status::ok);
    for (std::int64_t i = 0; i < 400; i += 8) {
      REQUIRE(prefix.append_to(*c, two, i, 8).code == status::ok);
    }
    REQUIRE(y.append_to(*c, two, 0, 300).code == status::ok);

    std::int64_t const shared = std::min<std::int64_t>(
        400, std::min(c->read(one).keys.parts.coded_end, c->read(one).values.parts.coded_end));
    CHECK(shared / o.page_tokens > 0);
    for (std::int64_t p = 0; (p + 1) * o.page_tokens <= shared; ++p) {
      CAPTURE(p);
      std::int32_t const of_one = c->table(one)[static_cast<std::size_t>(p)];
      std::int32_t const of_two = c->table(two)[static_cast<std::size_t>(p)];
      CHECK((of_one != of_two || of_one == -1));  // -1: only sinks
      if (of_one >= 0) REQUIRE((c->page(of_one) == c->page(of_two)));
    }
  }
}

TEST_CASE("pages move, and their sequences follow") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : some_schemes()) {
    CAPTURE(s.name);
    auto const o = options(s, 3, 900);
    auto const c = s.make(o);
    transform const t = s.random_transform(random, o.heads, o.key_dim);
    int const parent = add_frozen(s, *c, t);
    token_rows const x(random, o, 600);
    REQUIRE(x.append_to(*c, parent, 0, 400).code == status::ok);
    int const child = c->fork(parent);
    auto const content_before = c->read(parent);
    auto const table = c->table(parent);
    std::int32_t const last = o.pages - 1;
    std::int32_t const used = *std::max_element(table.begin(), table.end());
    REQUIRE(used >= 0);
    auto const bytes = c->page(used);
    std::int64_t const free = c->free_pages();
    REQUIRE(c->move_page(used, last) == (used == last ? status::bad_page : status::ok));
    CHECK((c->page(last) == bytes));
    CHECK(c->free_pages() == free);
    CHECK(c->table(parent) == c->table(child));
    auto const moved = c->table(parent);
    CHECK(std::count(moved.begin(), moved.end(), used) == 0);
    REQUIRE((c->read(parent) == content_before));
    REQUIRE((c->read(child) == content_before));
    // The page that was left is free again, and everything goes on.
    REQUIRE(x.append_to(*c, child, 400, 200).code == status::ok);
    REQUIRE((c->read(child) == c->expected(x.k, x.v, 600, s.waits ? &t : nullptr)));
    REQUIRE((c->read(parent) == content_before));
  }
}

TEST_CASE("beam search: slots take the content of their parents, many of one or none") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : some_schemes()) {
    CAPTURE(s.name);
    auto const o = options(s, 4, 2400);
    auto const c = s.make(o);
    transform const t = s.random_transform(random, o.heads, o.key_dim);
    std::vector<content> before;
    for (int i = 0; i < 3; ++i) {
      add_frozen(s, *c, t);
      REQUIRE(token_rows(random, o, 200).append_to(*c, i, 0, 200).code == status::ok);
      before.push_back(c->read(i));
    }
    REQUIRE(c->reorder({2, 2, -1, 0}) == status::ok);
    CHECK((c->read(0) == before[2]));
    CHECK((c->read(1) == before[2]));
    CHECK_FALSE(c->exists(2));
    CHECK((c->read(3) == before[0]));
    CHECK(c->table(0) == c->table(1));
    // They part from here.
    for (int const i : {0, 1, 3}) {
      REQUIRE(token_rows(random, o, 200).append_to(*c, i, 0, 200).code == status::ok);
    }
    CHECK_FALSE((c->read(0) == c->read(1)));
    CHECK(c->add() == 2);
    REQUIRE(c->reorder({-1, -1, -1, -1}) == status::ok);
    CHECK(c->free_pages() == o.pages);
  }
}

TEST_CASE("what a sequence had becomes free with its end") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : some_schemes()) {
    CAPTURE(s.name);
    auto const o = options(s, 2, 800);
    auto const c = s.make(o);
    transform const t = s.random_transform(random, o.heads, o.key_dim);
    for (int round = 0; round < 3; ++round) {
      int const one = add_frozen(s, *c, t);
      token_rows const x(random, o, 400);
      REQUIRE(x.append_to(*c, one, 0, 400).code == status::ok);
      int const copy = c->fork(one);
      CHECK(c->fork(one) == -1);  // no slot
      std::int64_t const free = c->free_pages();
      REQUIRE(c->remove(one) == status::ok);
      CHECK(c->free_pages() == free);  // the copy has them all
      REQUIRE((c->read(copy) == c->expected(x.k, x.v, 400, s.waits ? &t : nullptr)));
      REQUIRE(c->remove(copy) == status::ok);
      CHECK(c->free_pages() == o.pages);
      CHECK_FALSE(c->exists(copy));
      CHECK(c->remove(copy) == status::bad_sequence);
    }
  }
}

}  // namespace
