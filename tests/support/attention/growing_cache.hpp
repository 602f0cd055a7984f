// SPDX-License-Identifier: Apache-2.0
/// @file
/// A cache that grows token by token through launches whose arguments never change: what they read
/// of a step (new rows, slots, lengths, block tables) is in memory, as a captured graph has it.
#pragma once

#include "support/attention/coded_cache.hpp"

#include <kvarts/kernels/encode.cuh>

#include <cstdint>
#include <functional>
#include <vector>

namespace kvarts::test {

/// Launches with fixed arguments, in order: what a graph is captured from.
using launch_sequence = std::vector<std::function<cudaError_t()>>;

/// One of K and V. `all` are the rows that sequences will have, halfs by value.
template <class Codec, class Packing>
class growing_side {
 public:
  growing_side(attention_case const& c, int head_dim, transform const& t, std::int64_t pages,
               std::vector<std::int32_t> const& tables, std::int64_t table_stride,
               std::vector<rows> const& all)
      : memory(c, head_dim, t, pages, tables, table_stride),
        case_(c),
        transform_(t),
        all_(all),
        added_(c.heads, head_dim, c.sequences()) {
    ring_ = memory.windows_of().first.recents.map.tokens;
    auto const sequences = static_cast<std::size_t>(c.sequences());
    sink_slots_.resize(sequences);
    ring_slots_.resize(sequences);
    code_slots_.resize(sequences * static_cast<std::size_t>(ring_));
    for (rows const& x : all) {
      std::int64_t const end =
          partition_after(x.tokens, {c.window.sink, 0}, memory.step()).coded_end;
      decoded_.push_back(decoded_rows<Codec>(c, x, {c.window.sink, end}, t, ok));
      seen_.push_back(x);
    }
  }

  /// The launches of a step: new rows enter the windows, then what leaves them is coded from there.
  void capture(launch_sequence& launches) {
    auto const sinks = memory.writable_windows().first.sinks;
    auto const recents = memory.writable_windows().first.recents;
    if (case_.window.sink > 0) {
      launches.push_back([this, to = all_sequences(sinks)] {
        return cuda::append(to, added_.source(), sink_slots_.data(), {}, nullptr, nullptr);
      });
    }
    launches.push_back([this, to = all_sequences(recents)] {
      return cuda::append(to, added_.source(), ring_slots_.data(), {}, nullptr, nullptr);
    });
    source_view from = recents;
    from.map.tokens *= case_.sequences();
    launches.push_back([this, from, to = memory.writable_codes()] {
      return cuda::append(to, from, code_slots_.data(), transform_.view(), nullptr, nullptr);
    });
  }

  /// What the next replay reads if it adds nothing.
  void begin_step() {
    std::fill(sink_slots_.begin(), sink_slots_.end(), -1);
    std::fill(ring_slots_.begin(), ring_slots_.end(), -1);
    std::fill(code_slots_.begin(), code_slots_.end(), -1);
  }

  /// The next replay adds the token at `position` to a sequence.
  void add(int sequence, std::int64_t position, block_table table) {
    auto const i = static_cast<std::size_t>(sequence);
    for (int h = 0; h < added_.heads; ++h) {
      for (int d = 0; d < added_.head_dim; ++d) {
        added_.at(sequence, h, d) = all_[i].at(position, h, d);
      }
    }
    std::int64_t const sink = case_.window.sink;
    if (position < sink) {
      sink_slots_[i] = sequence * sink + position;
    } else {
      ring_slots_[i] = ring_row(sequence, position);
    }
    token_range const leaving{std::max(coded_end(position), sink), coded_end(position + 1)};
    for (std::int64_t t = leaving.begin; t < leaving.end; ++t) {
      code_slots_[static_cast<std::size_t>(ring_row(sequence, t))] =
          std::int64_t{table.pages[t / case_.page_tokens]} * case_.page_tokens +
          t % case_.page_tokens;
      for (int h = 0; h < added_.heads; ++h) {
        for (int d = 0; d < added_.head_dim; ++d) {
          seen_[i].at(t, h, d) = decoded_[i].at(t - sink, h, d);
        }
      }
    }
  }

  std::int64_t coded_end(std::int64_t tokens) const {
    return partition_after(tokens, case_.window, memory.step()).coded_end;
  }

  /// Rows in model space, as readers must see them after the replay.
  rows const& seen(int sequence) const { return seen_[static_cast<std::size_t>(sequence)]; }

  coded_side<Codec, Packing> memory;
  bool ok = true;

 private:
  std::int64_t ring_row(int sequence, std::int64_t position) const {
    return sequence * ring_ + (position - case_.window.sink) % ring_;
  }

  /// The window rows of all sequences, which follow each other, as 16-bit rows to append to.
  view<identity<half>, std::byte> all_sequences(tensor_view<std::byte> const& first) const {
    layout m = first.map;
    m.tokens *= case_.sequences();
    return {first.data, m, {}};
  }

  attention_case case_;
  transform transform_;
  std::vector<rows> all_;
  std::vector<rows> decoded_;
  std::vector<rows> seen_;
  rows added_;
  std::int64_t ring_ = 1;
  std::vector<std::int64_t> sink_slots_;
  std::vector<std::int64_t> ring_slots_;
  std::vector<std::int64_t> code_slots_;
};

/// The whole cache; `shape.lengths` are the tokens so far, of at most `room` each.
template <class K, class V>
class growing_cache {
 public:
  using key_packing = fragment<operand::keys>;
  using value_packing = fragment<operand::values>;

  growing_cache(attention_case const& c, std::int64_t room, random_source& random)
      : shape(c),
        table_stride_(ceil_div(room, c.page_tokens)),
        pages_(table_stride_ * c.sequences()),
        tables_(static_cast<std::size_t>(pages_), -1),
        key_transform_{c.heads, c.key_dim, {}, {}, c.key_rotation},
        value_transform_{c.heads, c.value_dim, {}, {}, c.value_rotation},
        transforms_(c.lengths.size(), key_transform_.view()),
        keys(c, c.key_dim, key_transform_, pages_, tables_, table_stride_,
             halfs(c, c.key_dim, room, random)),
        values(c, c.value_dim, value_transform_, pages_, tables_, table_stride_,
               halfs(c, c.value_dim, room, random)) {}

  /// Makes memory ready for a replay that adds a token to the sequences that `grows(i)` names; a
  /// page is taken, from the pool's end, when its first token is coded.
  template <class Grows>
  void begin_step(Grows&& grows) {
    keys.begin_step();
    values.begin_step();
    for (int i = 0; i < shape.sequences(); ++i) {
      if (!grows(i)) continue;
      std::int64_t& length = shape.lengths[static_cast<std::size_t>(i)];
      std::int32_t* const table = tables_.data() + i * table_stride_;
      std::int64_t const end = std::max(keys.coded_end(length + 1), values.coded_end(length + 1));
      for (std::int64_t p = shape.window.sink / shape.page_tokens; p * shape.page_tokens < end;
           ++p) {
        if (table[p] < 0 && end > shape.window.sink) {
          table[p] = static_cast<std::int32_t>(pages_ - ++used_);
        }
      }
      keys.add(i, length, {table, table_stride_});
      values.add(i, length, {table, table_stride_});
      ++length;
    }
  }

  cache_view<K, V, key_packing, value_packing> view() const {
    return {keys.memory.codes(),
            values.memory.codes(),
            keys.memory.windows_of(),
            values.memory.windows_of(),
            shape.window,
            tables_.data(),
            table_stride_,
            shape.sequences(),
            shape.lengths.data(),
            nullptr,
            transforms_.data(),
            value_transform_.rotate};
  }

  std::int64_t used_pages() const { return used_; }

  attention_case shape;

 private:
  /// Awkward rows of all sequences, rounded as windows do: what is coded comes from there.
  static std::vector<rows> halfs(attention_case const& c, int head_dim, std::int64_t room,
                                 random_source& random) {
    std::vector<rows> all;
    for (int i = 0; i < c.sequences(); ++i) {
      all.push_back(awkward_rows(random, c.heads, head_dim, room));
      for (float& x : all.back().values) x = half(x);
    }
    return all;
  }

  std::int64_t table_stride_;
  std::int64_t pages_;
  std::int64_t used_ = 0;
  std::vector<std::int32_t> tables_;
  transform key_transform_;
  transform value_transform_;
  std::vector<transform_view> transforms_;

 public:
  growing_side<K, key_packing> keys;
  growing_side<V, value_packing> values;
};

}  // namespace kvarts::test
