// SPDX-License-Identifier: Apache-2.0
/// @file
/// A model of a paged cache that is too simple to be wrong: sequences are their rows, the ring is
/// an array of positions, a page is a shared pointer. It says what each call must return and leave.
#pragma once

#include "support/any_cache.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

namespace kvarts::test {

struct model_sequence {
  rows k, v;
  std::optional<transform> frozen{};
  std::vector<std::int64_t> ring{};           ///< the position whose row a slot holds; -1 for none
  std::vector<std::shared_ptr<int>> pages{};  ///< null where nothing is coded

  std::int64_t tokens() const { return k.tokens; }
};

class cache_model {
 public:
  cache_model(any_scheme const& s, cache_options const& o)
      : scheme_(s), options_(o), slots_(static_cast<std::size_t>(o.sequences)) {
    std::int64_t const steps = std::lcm(s.key_step, s.value_step);
    std::int64_t const steady =
        s.window.recent + std::max(s.key_step, s.value_step) - 1 + std::max(o.append_slots, 1);
    std::int64_t const needed = std::max<std::int64_t>(steady, o.prefill_room);
    room_ = (needed + steps - 1) / steps * steps;
  }

  std::int64_t room() const { return room_; }
  std::optional<model_sequence> const& at(int i) const { return slots_[index(i)]; }
  int slots() const { return options_.sequences; }

  std::int64_t free_pages() const {
    std::set<int const*> used;
    for (auto const& s : slots_) {
      if (!s) continue;
      for (auto const& page : s->pages) {
        if (page != nullptr) used.insert(page.get());
      }
    }
    return options_.pages - static_cast<std::int64_t>(used.size());
  }

  int add() {
    int const slot = free_slot();
    if (slot < 0) return -1;
    model_sequence s{rows(options_.heads, options_.key_dim, 0),
                     rows(options_.heads, options_.value_dim, 0)};
    s.ring.assign(static_cast<std::size_t>(room_), -1);
    s.pages.resize(static_cast<std::size_t>(options_.pages));
    slots_[index(slot)] = s;
    return slot;
  }

  int fork(int i) {
    int const slot = at(i) ? free_slot() : -1;
    if (slot >= 0) slots_[index(slot)] = at(i);
    return slot;
  }

  status remove(int i) {
    if (!at(i)) return status::bad_sequence;
    slots_[index(i)].reset();
    return status::ok;
  }

  status append(int i, rows const& k, rows const& v) {
    if (!at(i)) return status::bad_sequence;
    model_sequence& s = *slots_[index(i)];
    std::int64_t const after = s.tokens() + k.tokens;
    if (!coding(s)) {
      if (after - scheme_.window.sink > room_) return status::no_window_room;
    } else if (!own_pages(s, s.tokens(), after)) {
      return status::no_pages;
    }
    for (std::int64_t p = s.tokens(); p < after; ++p) {
      if (p >= scheme_.window.sink) s.ring[slot_of(p)] = p;
    }
    s.k.values.insert(s.k.values.end(), k.values.begin(), k.values.end());
    s.v.values.insert(s.v.values.end(), v.values.begin(), v.values.end());
    s.k.tokens = s.v.tokens = after;
    return status::ok;
  }

  status freeze(int i, transform const& t) {
    if (!at(i)) return status::bad_sequence;
    model_sequence& s = *slots_[index(i)];
    if (coding(s)) return status::bad_transform;
    if (!own_pages(s, 0, s.tokens())) return status::no_pages;
    s.frozen = t;
    return status::ok;
  }

  status crop(int i, std::int64_t tokens) {
    if (!at(i)) return status::bad_sequence;
    model_sequence& s = *slots_[index(i)];
    if (tokens < 0 || tokens > s.tokens()) return status::bad_tokens;
    std::int64_t const keys = coded_end(tokens, scheme_.key_step, coding(s));
    std::int64_t const values = coded_end(tokens, scheme_.value_step, coding(s));
    for (std::int64_t p = std::min(keys, values); p < tokens; ++p) {
      if (s.ring[slot_of(p)] != p) return status::not_recoverable;
    }
    s.k.values.resize(s.k.index(tokens, 0, 0));
    s.v.values.resize(s.v.index(tokens, 0, 0));
    s.k.tokens = s.v.tokens = tokens;
    for (std::int64_t p = 0; p < options_.pages; ++p) {
      bool const sinks_only = std::max(keys, values) <= scheme_.window.sink;
      if (sinks_only || p * options_.page_tokens >= std::max(keys, values)) {
        s.pages[static_cast<std::size_t>(p)] = nullptr;
      }
    }
    return status::ok;
  }

  status reorder(std::vector<int> const& parents) {
    for (int const parent : parents) {
      if (parent >= slots() || parent < -1 || (parent >= 0 && !at(parent))) {
        return status::bad_sequence;
      }
    }
    auto const before = slots_;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      slots_[i] = parents[i] < 0 ? std::nullopt : before[index(parents[i])];
    }
    return status::ok;
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  std::size_t slot_of(std::int64_t position) const {
    return static_cast<std::size_t>((position - scheme_.window.sink) % room_);
  }
  bool coding(model_sequence const& s) const { return !scheme_.waits || s.frozen; }

  int free_slot() const {
    for (int i = 0; i < slots(); ++i) {
      if (!at(i)) return i;
    }
    return -1;
  }

  /// Where the coded part of a sequence of so many tokens ends, at least the sinks' end.
  std::int64_t coded_end(std::int64_t tokens, int step, bool codes) const {
    std::int64_t const excess = tokens - scheme_.window.sink - scheme_.window.recent;
    return scheme_.window.sink + (codes && excess > 0 ? excess / step * step : 0);
  }

  /// Pages that growing codes into become the sequence's own; false, and no change, if too few are
  /// free.
  bool own_pages(model_sequence& s, std::int64_t before, std::int64_t after) {
    std::set<std::int64_t> wanted;
    for (int const step : {scheme_.key_step, scheme_.value_step}) {
      std::int64_t const from = coded_end(before, step, coding(s));
      for (std::int64_t p = from; p < coded_end(after, step, true); ++p) {
        wanted.insert(p / options_.page_tokens);
      }
    }
    std::erase_if(wanted, [&](std::int64_t p) {
      return p < options_.pages && s.pages[static_cast<std::size_t>(p)].use_count() == 1;
    });
    if (!wanted.empty() && *wanted.rbegin() >= options_.pages) return false;
    if (static_cast<std::int64_t>(wanted.size()) > free_pages()) return false;
    for (std::int64_t const p : wanted)
      s.pages[static_cast<std::size_t>(p)] = std::make_shared<int>();
    return true;
  }

  any_scheme scheme_;
  cache_options options_;
  std::int64_t room_ = 0;
  std::vector<std::optional<model_sequence>> slots_;
};

}  // namespace kvarts::test
