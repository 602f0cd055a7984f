// SPDX-License-Identifier: Apache-2.0
// The random numbers are Python's, and the simulation follows its rules as a plain search does.
#include "support/catch.hpp"
#include "support/random.hpp"
#include "tier/experiments.hpp"
#include "tier/python_random.hpp"
#include "tier/simulation.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

namespace {

using namespace kvarts::tool;
using kvarts::test::random_source;

TEST_CASE("random numbers are those of CPython") {
  // random.seed(s); three times random.random(); random.shuffle(list(range(10)));
  // random.randrange(n) for n in (1, 2, 1000000, 4294967295). Printed by CPython 3.11.
  struct printed {
    std::uint32_t seed;
    std::vector<double> uniform;
    std::vector<int> shuffled;
    std::vector<std::uint32_t> below;
  };
  for (printed const& p :
       {printed{42,
                {0x1.4762f307200c5p-1, 0x1.99c6b5eeb2060p-6, 0x1.19a1491f589dcp-2},
                {9, 7, 8, 0, 4, 6, 5, 1, 2, 3},
                {0, 0, 98246, 939042955}},
        printed{0,
                {0x1.b0580f98a7dbep-1, 0x1.84129978f9c1ap-1, 0x1.aeaa51052e978p-2},
                {1, 0, 9, 5, 6, 2, 3, 7, 8, 4},
                {0, 1, 146534, 3246154361}},
        printed{4294967295,
                {0x1.454d9227a7013p-1, 0x1.a0274a3720bf8p-3, 0x1.36f8c1616ef77p-1},
                {0, 3, 1, 9, 2, 7, 8, 6, 5, 4},
                {0, 0, 640063, 592078144}}}) {
    CAPTURE(p.seed);
    python_random random(p.seed);
    for (double const x : p.uniform) CHECK(random.uniform() == x);
    std::vector<int> values(10);
    std::iota(values.begin(), values.end(), 0);
    random.shuffle(values);
    CHECK(values == p.shuffled);
    std::vector<std::uint32_t> below;
    for (std::uint32_t const n : {1u, 2u, 1'000'000u, 4'294'967'295u}) {
      below.push_back(random.below(n));
    }
    CHECK(below == p.below);
  }
}

TEST_CASE("the published workload is in the order that Python shuffles") {
  // random.seed(42), 73,728 times random.random(), the groups of the shuffled list.
  std::vector<std::uint32_t> const first = {12, 25, 19, 11, 29, 4, 21, 9,  0, 5,  26,
                                            23, 13, 18, 17, 14, 6, 14, 10, 7, 16, 21};
  std::vector<std::uint32_t> const last = {31, 29, 14, 13, 0, 2, 22, 2, 20, 4, 9, 8, 19, 24, 24};
  workload const w = shared_prefixes(32, 42, true);
  REQUIRE(w.requests.size() == 129);
  std::vector<std::uint32_t> groups;
  for (request const& r : w.requests) groups.push_back(r.prefixes.at(0).id);
  CHECK(groups[0] == 12);  // sent once to warm the cache
  CHECK_FALSE(w.requests[0].counted);
  CHECK(w.requests[1].repeated);
  CHECK(std::equal(first.begin(), first.end(), groups.begin() + 1));
  CHECK(std::equal(last.begin(), last.end(), groups.end() - 15));
}

bool uses(request const& r, std::uint32_t id) {
  return std::any_of(r.prefixes.begin(), r.prefixes.end(),
                     [&](prefix_use const& p) { return p.id == id; });
}

/// The tokens touched since the last use of a prefix before request `now`; -1 if there is none.
std::int64_t touched_since(workload const& w, std::size_t now, std::uint32_t id) {
  std::map<std::uint32_t, std::int64_t> others;
  std::int64_t touched = 0;
  for (std::size_t i = now; i-- > 0;) {
    request const& r = w.requests[i];
    if (uses(r, id)) {
      for (auto const& [other, tokens] : others) touched += tokens;
      return touched;
    }
    touched += r.new_tokens;
    for (prefix_use const& p : r.prefixes) {
      if (!uses(w.requests[now], p.id)) others.try_emplace(p.id, p.tokens);
    }
  }
  return -1;
}

/// Whether one of the two requests before it was the first of all to use a prefix.
bool is_too_new(workload const& w, std::size_t now, std::uint32_t id) {
  std::size_t first = 0;
  while (!uses(w.requests[first], id)) ++first;
  return w.requests[first].counted && now - first <= 2;
}

/// The rules again, request by request, looking back over everything.
outcome looked_up(workload const& w, cache_room room) {
  outcome o;
  for (std::size_t i = 0; i < w.requests.size(); ++i) {
    request const& r = w.requests[i];
    std::int64_t found = 0;
    std::size_t parts = 0;
    for (prefix_use const& p : r.prefixes) {
      std::int64_t const touched = touched_since(w, i, p.id);
      if (!r.counted || touched < 0 || touched > room.tokens || is_too_new(w, i, p.id)) break;
      if (touched > room.device_tokens) o.restored_tokens += p.tokens;
      found += p.tokens;
      ++parts;
    }
    o.encoded_tokens += r.new_tokens - found;
    for (prefix_use const& p : r.prefixes) o.encoded_tokens += p.tokens;
    if (!r.counted) continue;
    ++o.requests;
    o.hits += found > 0 ? 1 : 0;
    o.prompt_tokens += r.prompt_tokens;
    bool const whole = r.repeated && parts == r.prefixes.size();
    o.hit_tokens += whole ? r.prompt_tokens : static_cast<double>(found);
  }
  return o;
}

TEST_CASE("the simulation finds what a search through all requests finds") {
  auto const seed = kvarts::test::test_seed();
  CAPTURE(seed);
  random_source random(seed);
  std::int64_t restored = 0;
  for (int round = 0; round < 60; ++round) {
    int const ids = random.between(1, 30);
    workload w{{}, static_cast<std::uint32_t>(ids)};
    for (int i = random.between(1, 120); i > 0; --i) {
      request r;
      r.new_tokens = random.between(0, 40);
      r.prompt_tokens = 7;
      r.counted = random.between(0, 9) > 0;
      r.repeated = random.between(0, 9) == 0;
      for (int id = random.between(0, ids); id < ids; id += random.between(1, 6)) {
        r.prefixes.push_back({static_cast<std::uint32_t>(id), random.between(1, 100)});
        r.prompt_tokens += static_cast<double>(r.prefixes.back().tokens);
      }
      w.requests.push_back(r);
    }
    cache_room const room{random.between(0, 1500), random.between(0, 300)};
    outcome const got = simulate(w, room);
    outcome const expected = looked_up(w, room);
    CHECK(got.requests == expected.requests);
    CHECK(got.hits == expected.hits);
    CHECK(got.hit_tokens == expected.hit_tokens);
    CHECK(got.prompt_tokens == expected.prompt_tokens);
    CHECK(got.encoded_tokens == expected.encoded_tokens);
    CHECK(got.restored_tokens == expected.restored_tokens);
    restored += got.restored_tokens;
  }
  CHECK(restored > 0);
}

TEST_CASE("a small workload by hand") {
  auto const uses = [](std::uint32_t id) { return request{{{id, 100}}, 10, 110}; };
  // The prefix 0 comes back behind 1, 2 and 3, each with 10 new tokens.
  workload const w{{uses(0), uses(1), uses(2), uses(3), uses(0)}, 4};
  CHECK(simulate(w, {330, 0}).hit_tokens == 100);
  CHECK(simulate(w, {330, 0}).restored_tokens == 100);
  CHECK(simulate(w, {330, 330}).restored_tokens == 0);  // still on the device
  CHECK(simulate(w, {330, 0}).encoded_tokens == 5 * 110 - 100);
  CHECK(simulate(w, {329, 0}).hit_tokens == 0);
  CHECK(simulate(w, {330, 0}).hit_rate() == Catch::Approx(100 / 550.0));
  // Two requests later nothing of it is visible yet, three later it is.
  CHECK(simulate({{uses(0), uses(1), uses(0)}, 2}, {1000, 0}).hits == 0);
  CHECK(simulate({{uses(0), uses(1), uses(2), uses(0)}, 3}, {1000, 0}).hits == 1);
  CHECK(simulate({{}, 0}, {1000, 0}).hit_rate() == 0);
}

}  // namespace
