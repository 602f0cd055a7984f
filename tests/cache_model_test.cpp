// SPDX-License-Identifier: Apache-2.0
// Random calls on a paged cache against a model of it.
#include "support/cache_model.hpp"

#include "support/any_cache.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr int heads = 2, key_dim = 20, value_dim = 12;

/// A cache and its model, which get the same calls.
class pair {
 public:
  pair(any_scheme const& s, cache_options const& o, std::uint64_t seed)
      : scheme_(s), options_(o), random_(seed), model_(s, o), cache_(s.make(o)) {}

  void step() {
    auto const before = cache_->memory();
    bool changed = true;
    switch (random_.between(0, 12)) {
      case 0: REQUIRE(cache_->add() == model_.add()); break;
      case 1: changed = random_.between(0, 2) == 0 && remove(); break;
      case 2: changed = fork(); break;
      case 3: changed = reorder(); break;
      case 4: changed = move_page(); break;
      case 5:
      case 6: changed = crop(); break;
      case 7: changed = freeze(); break;
      default: changed = append(); break;
    }
    if (!changed) REQUIRE((cache_->memory() == before));
    REQUIRE(cache_->free_pages() == model_.free_pages());
    for (int i = 0; i < model_.slots(); ++i) {
      REQUIRE(cache_->exists(i) == model_.at(i).has_value());
      if (model_.at(i)) REQUIRE(cache_->length(i) == model_.at(i)->tokens());
    }
  }

  void check_content() {
    for (int i = 0; i < model_.slots(); ++i) {
      if (!model_.at(i)) continue;
      CAPTURE(i);
      model_sequence const& s = *model_.at(i);
      transform const* const t = s.frozen ? &*s.frozen : nullptr;
      REQUIRE((cache_->read(i) == cache_->expected(s.k, s.v, s.tokens(), t)));
    }
  }

  int met(status s) const { return met_[static_cast<std::size_t>(s)]; }

 private:
  int any_slot() { return random_.between(0, model_.slots() - 1); }

  /// Both must answer alike; true when something may have changed.
  bool answers(status is, status expected) {
    REQUIRE(is == expected);
    ++met_[static_cast<std::size_t>(is)];
    return is == status::ok;
  }

  bool append() {
    int const slot = any_slot();
    std::int64_t const count = random_.between(0, 1 << random_.between(3, 8));
    rows const k = normal_rows(random_, heads, key_dim, count);
    rows const v = normal_rows(random_, heads, value_dim, count);
    auto const result = cache_->append(slot, k.source(), v.source());
    return answers(result.code, model_.append(slot, k, v));
  }
  bool freeze() {
    int const slot = any_slot();
    transform const t = scheme_.random_transform(random_, heads, key_dim);
    return answers(cache_->freeze(slot, t), model_.freeze(slot, t));
  }
  bool crop() {
    int const slot = any_slot();
    std::int64_t const length = model_.at(slot) ? model_.at(slot)->tokens() : 5;
    bool const near_end = random_.between(0, 2) != 0;
    std::int64_t const tokens =
        near_end ? length - random_.between(-1, 40) : random_.between(-1, static_cast<int>(length));
    return answers(cache_->crop(slot, tokens), model_.crop(slot, tokens));
  }
  bool remove() {
    int const slot = any_slot();
    return answers(cache_->remove(slot), model_.remove(slot));
  }
  bool fork() {
    int const slot = any_slot();
    int const copy = cache_->fork(slot);
    REQUIRE(copy == model_.fork(slot));
    return copy >= 0;
  }
  bool reorder() {
    std::vector<int> parents;
    for (int i = 0; i < model_.slots(); ++i) parents.push_back(random_.between(-1, model_.slots()));
    if (random_.between(0, 3) != 0) {  // mostly a valid one
      for (int& parent : parents) {
        parent = std::min(parent, model_.slots() - 1);
        if (parent >= 0 && !model_.at(parent)) parent = -1;
      }
    }
    return answers(cache_->reorder(parents), model_.reorder(parents));
  }
  /// Content must not change, wherever it lies.
  bool move_page() {
    std::vector<int> owners(static_cast<std::size_t>(options_.pages));
    for (int i = 0; i < model_.slots(); ++i) {
      for (std::int32_t const page : cache_->table(i)) {
        if (page >= 0) ++owners[static_cast<std::size_t>(page)];
      }
    }
    std::int32_t const from = random_.between(-1, options_.pages);
    std::int32_t const to = random_.between(-1, options_.pages);
    auto const owned = [&](std::int32_t page) {
      bool const inside = page >= 0 && page < options_.pages;
      return inside ? owners[static_cast<std::size_t>(page)] : -1;
    };
    bool const possible = owned(from) > 0 && owned(to) == 0;
    return answers(cache_->move_page(from, to), possible ? status::ok : status::bad_page);
  }

  any_scheme scheme_;
  cache_options options_;
  random_source random_;
  cache_model model_;
  std::unique_ptr<any_cache> cache_;
  std::vector<int> met_ = std::vector<int>(64);
};

TEST_CASE("random calls leave what a simple model says") {
  std::uint64_t const seed = test_seed();
  int no_pages = 0, no_room = 0, not_recoverable = 0, refused_freeze = 0;
  random_source random(seed);
  for (any_scheme const& s : all_schemes()) {
    for (int trial = 0; trial < 3; ++trial) {
      CAPTURE(seed, s.name, trial);
      cache_options const o{.heads = heads,
                            .key_dim = key_dim,
                            .value_dim = value_dim,
                            .sequences = random.between(1, 5),
                            .pages = random.between(3, 14),
                            .page_tokens = std::lcm(std::lcm(s.key_step, s.value_step), 16),
                            .append_slots = random.between(0, 64),
                            .prefill_room = random.between(0, 200),
                            .window_type = trial == 1 ? dtype::bf16 : dtype::f16};
      pair both(s, o, random.bits());
      for (int i = 0; i < 300; ++i) {
        CAPTURE(i);
        both.step();
        if (i % 10 == 9) both.check_content();
      }
      no_pages += both.met(status::no_pages);
      no_room += both.met(status::no_window_room);
      not_recoverable += both.met(status::not_recoverable);
      refused_freeze += both.met(status::bad_transform);
    }
  }
  // The random calls came to all of these.
  CHECK(no_pages > 50);
  CHECK(no_room > 50);
  CHECK(not_recoverable > 10);
  CHECK(refused_freeze > 50);
}

}  // namespace
