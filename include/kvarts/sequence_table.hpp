// SPDX-License-Identifier: Apache-2.0
/// @file
/// The bookkeeping of a paged cache: which slots hold sequences, how long they are, their frozen
/// transforms, and who owns which pages. It moves no rows and no codes.
#pragma once

#include <kvarts/bits.hpp>
#include <kvarts/page_pool.hpp>
#include <kvarts/transform.hpp>
#include <kvarts/view.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kvarts {

/// Sequences in slots 0..slots-1, each with a block table of as many entries as the pool has pages
/// (-1 where nothing is coded). Allocates when made and in `reordered`, never elsewhere.
class sequence_table {
 public:
  sequence_table(std::int32_t slots, std::int32_t pages)
      : slot_count_(slots), page_count_(pages), pool_(pages), state_(make_state()) {}

  std::int32_t slots() const noexcept { return slot_count_; }
  std::int32_t pages() const noexcept { return page_count_; }
  std::int64_t free_pages() const noexcept { return pool_.free_pages(); }
  bool exists(int i) const noexcept { return i >= 0 && i < slot_count_ && state_.used[at(i)]; }
  bool frozen(int i) const noexcept { return state_.frozen[at(i)]; }
  std::int64_t length(int i) const noexcept { return state_.lengths[at(i)]; }
  /// First position after the sinks that the ring of recent rows still holds.
  std::int64_t ring_begin(int i) const noexcept { return state_.ring_begins[at(i)]; }
  transform_view const& transform_of(int i) const noexcept { return state_.views[at(i)]; }
  block_table table(int i) const noexcept { return {row(i), page_count_}; }

  std::int32_t const* tables() const noexcept { return state_.tables.data(); }
  std::int64_t const* lengths() const noexcept { return state_.lengths.data(); }
  bool const* all_frozen() const noexcept { return state_.frozen.get(); }
  transform_view const* transforms() const noexcept { return state_.views.data(); }

  /// Takes a free slot for an empty sequence, whose transform is `initial` until it is frozen (at
  /// once with `frozen`); -1 when there is none.
  int add(std::int64_t ring_begin, bool frozen, transform_view const& initial) noexcept {
    for (int i = 0; i < slot_count_; ++i) {
      if (state_.used[at(i)]) continue;
      state_.used[at(i)] = 1;
      state_.frozen[at(i)] = frozen;
      state_.ring_begins[at(i)] = ring_begin;
      state_.views[at(i)] = initial;
      return i;
    }
    return -1;
  }

  void remove(int i) noexcept {
    release_pages(i, 0);
    state_.used[at(i)] = 0;
    state_.frozen[at(i)] = false;
    state_.lengths[at(i)] = 0;
    state_.ring_begins[at(i)] = 0;
    state_.views[at(i)] = {};
    state_.owners[at(i)].reset();
  }

  void set_length(int i, std::int64_t tokens, std::int64_t ring_begin) noexcept {
    state_.lengths[at(i)] = tokens;
    state_.ring_begins[at(i)] = ring_begin;
  }

  void freeze(int i, std::shared_ptr<transform const> t) noexcept {
    state_.views[at(i)] = t->view();
    state_.owners[at(i)] = std::move(t);
    state_.frozen[at(i)] = true;
  }

  /// Gives slot `to` all that slot `from` has; pages are shared.
  void share(int from, int to) noexcept {
    copy_slot(state_, from, state_, to);
    share_pages(row(to));
  }

  void release_pages(int i, std::int64_t first) noexcept {
    for (std::int64_t p = first; p < page_count_; ++p) {
      if (row(i)[p] >= 0) pool_.release(row(i)[p]);
      row(i)[p] = -1;
    }
  }

  /// Whether a sequence may not write its page p as it is: it has none, or others share it.
  bool needs_page(int i, std::int64_t p) const noexcept {
    return row(i)[p] < 0 || pool_.shares(row(i)[p]) > 1;
  }

  /// Gives a sequence a page p of its own (`needs_page`, and one must be free); returns the page
  /// whose bytes it must be filled with, or -1.
  std::int32_t own_page(int i, std::int64_t p) noexcept {
    std::int32_t const shared = row(i)[p];
    row(i)[p] = pool_.take();
    if (shared >= 0) pool_.release(shared);
    return shared;
  }

  bool can_move(std::int32_t from, std::int32_t to) const noexcept {
    bool const inside = from >= 0 && from < page_count_ && to >= 0 && to < page_count_;
    return inside && pool_.shares(from) > 0 && pool_.shares(to) == 0;
  }

  void move_page(std::int32_t from, std::int32_t to) noexcept {
    pool_.move(from, to);
    std::replace(state_.tables.begin(), state_.tables.end(), from, to);
  }

  /// All slots at once, so that a new arrangement can be built before the old one goes.
  struct state {
    std::vector<char> used;
    std::vector<std::int32_t> tables;
    std::vector<std::int64_t> lengths;
    std::vector<std::int64_t> ring_begins;
    std::unique_ptr<bool[]> frozen;
    std::vector<transform_view> views;
    std::vector<std::shared_ptr<transform const>> owners;
  };

  /// Slot i as slot parents[i] is now; -1 leaves it empty.
  state reordered(std::vector<int> const& parents) const {
    state next = make_state();
    for (int i = 0; i < slot_count_; ++i) {
      if (parents[at(i)] >= 0) copy_slot(state_, parents[at(i)], next, i);
    }
    return next;
  }

  void replace(state next) noexcept {
    for (int i = 0; i < slot_count_; ++i) {
      share_pages(next.tables.data() + std::int64_t{i} * page_count_);
    }
    for (int i = 0; i < slot_count_; ++i) release_pages(i, 0);
    state_ = std::move(next);
  }

 private:
  static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }

  std::int32_t* row(int i) noexcept { return state_.tables.data() + std::int64_t{i} * page_count_; }
  std::int32_t const* row(int i) const noexcept {
    return state_.tables.data() + std::int64_t{i} * page_count_;
  }

  state make_state() const {
    std::size_t const n = at(slot_count_);
    return {std::vector<char>(n),
            std::vector<std::int32_t>(n * at(page_count_), -1),
            std::vector<std::int64_t>(n),
            std::vector<std::int64_t>(n),
            std::make_unique<bool[]>(n),
            std::vector<transform_view>(n),
            std::vector<std::shared_ptr<transform const>>(n)};
  }

  void copy_slot(state const& from, int i, state& to, int j) const noexcept {
    to.used[at(j)] = from.used[at(i)];
    to.lengths[at(j)] = from.lengths[at(i)];
    to.ring_begins[at(j)] = from.ring_begins[at(i)];
    to.frozen[at(j)] = from.frozen[at(i)];
    to.views[at(j)] = from.views[at(i)];
    to.owners[at(j)] = from.owners[at(i)];
    std::copy_n(from.tables.data() + std::int64_t{i} * page_count_, page_count_,
                to.tables.data() + std::int64_t{j} * page_count_);
  }

  void share_pages(std::int32_t const* pages) noexcept {
    for (std::int32_t p = 0; p < page_count_; ++p) {
      if (pages[p] >= 0) pool_.share(pages[p]);
    }
  }

  std::int32_t slot_count_;
  std::int32_t page_count_;
  page_pool pool_;
  state state_;
};

}  // namespace kvarts
