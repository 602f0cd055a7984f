// SPDX-License-Identifier: Apache-2.0
/// @file
/// A cache of many sequences as kernels see it, and the rows that it stands for, which come from
/// linear codes of each sequence alone.
#pragma once

#include "support/attention/attention_case.hpp"
#include "support/gemv/coded_batch.hpp"

#include <kvarts/cuda/attention.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

namespace kvarts::test {

/// Memory that begins at 16 bytes, full of 0xFF: NaN wherever nothing was written.
class aligned_bytes {
 public:
  void resize(std::int64_t bytes) {
    chunks_.assign(static_cast<std::size_t>(bytes / 16 + 1), chunk{~0ull, ~0ull});
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(chunks_.data()); }
  std::byte const* data() const { return reinterpret_cast<std::byte const*>(chunks_.data()); }

 private:
  struct alignas(16) chunk {
    std::uint64_t low;
    std::uint64_t high;
  };
  std::vector<chunk> chunks_;
};

/// What codes of these tokens stand for, coded by the host in a linear layout of its own; rows
/// `range` of `x`, from token 0 on. False in `ok` when the host refuses.
template <class Codec>
rows decoded_rows(attention_case const& c, rows const& x, token_range range, transform const& t,
                  bool& ok) {
  rows decoded(x.heads, x.head_dim, range.size());
  if (range.size() == 0) return decoded;
  source_view source = x.source();
  source.data = source.row(0, range.begin);
  source.map.tokens = range.size();
  layout const m = make_head_tiles<Codec>(x.heads, x.head_dim, range.end,
                                          {.tile_tokens = c.tile_tokens, .group = c.group});
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
  view<Codec, std::byte> const plain{bytes.data(), m, {}};
  ok = ok && encode(plain, source, range, t.view()).code == status::ok;
  view<Codec, std::byte const> const readable = plain;
  ok = ok && decode(readable, decoded.target(), range, t.view()) == status::ok;
  return decoded;
}

/// One of K and V of all sequences.
template <class Codec, class Packing>
class coded_side {
 public:
  coded_side(attention_case const& c, int head_dim, transform const& t, std::int64_t pages,
             std::vector<std::int32_t> const& tables, std::int64_t table_stride)
      : case_(c), head_dim_(head_dim), transform_(t), tables_(tables), table_stride_(table_stride) {
    tile_options const o{.tile_tokens = c.tile_tokens, .group = c.group};
    map_ = make_pages<Codec, Packing>(c.heads, head_dim, pages, c.page_tokens, o);
    codes_.resize(map_.size_bytes());
    step_ = eviction_step(Codec::grouped_along, map_.group);
    ring_ = std::max<std::int64_t>(c.window.recent + step_ + 8, 1);
    std::int64_t const row = std::int64_t{c.heads} * head_dim * 2;
    sinks_.resize(std::max<std::int64_t>(c.window.sink, 1) * row * c.sequences());
    recents_.resize(ring_ * row * c.sequences());
  }

  void add(int sequence, rows const& x) {
    partition const parts = partition_after(x.tokens, case_.window, step_);
    rows_.push_back(x);
    rows& seen = rows_.back();
    window_view<std::byte> const w = writable_windows().sequence(sequence);
    for (std::int64_t t = 0; t < x.tokens; ++t) {
      bool const coded = t >= parts.sinks && t < parts.coded_end;
      for (int h = 0; h < x.heads && !coded; ++h) {
        for (int d = 0; d < head_dim_; ++d) {
          float& value = seen.at(t, h, d);
          store(w.row(h, t) + 2 * d, case_.window_type, value);
          value = case_.window_type == dtype::f16 ? float{half(value)} : float{bfloat16(value)};
        }
      }
    }
    token_range const range{parts.sinks, parts.coded_end};
    if (range.size() == 0) return;
    source_view source = x.source();
    source.data = source.row(0, range.begin);
    source.map.tokens = range.size();
    auto to = writable_codes();
    to.table = {tables_.data() + sequence * table_stride_, table_stride_};
    ok_ = ok_ && encode(to, source, range, transform_.view()).code == status::ok;
    rows const decoded = decoded_rows<Codec>(case_, x, range, transform_, ok_);
    for (std::int64_t t = range.begin; t < range.end; ++t) {
      for (int h = 0; h < x.heads; ++h) {
        for (int d = 0; d < head_dim_; ++d) seen.at(t, h, d) = decoded.at(t - range.begin, h, d);
      }
    }
  }

  view<Codec, std::byte const, Packing> codes() const { return {codes_.data(), map_, {}}; }

  window_planes<std::byte const> windows_of() const {
    return window<std::byte const>(sinks_.data(), recents_.data());
  }

  /// The memory, for launches that fill it.
  view<Codec, std::byte, Packing> writable_codes() { return {codes_.data(), map_, {}}; }
  window_planes<std::byte> writable_windows() {
    return window<std::byte>(sinks_.data(), recents_.data());
  }

  /// Tokens that leave the window at a time.
  int step() const { return step_; }

  /// Rows in model space, as readers must see them.
  rows const& seen(int sequence) const { return rows_[static_cast<std::size_t>(sequence)]; }

  bool ok() const { return ok_; }

 private:
  template <class Byte>
  window_planes<Byte> window(Byte* sinks, Byte* recents) const {
    auto const plan = [&](std::int64_t tokens) {
      return plan_tensor(case_.window_type, case_.heads, head_dim_, tokens,
                         contiguous(order::token_major, case_.heads, head_dim_, tokens));
    };
    std::int64_t const row = std::int64_t{case_.heads} * head_dim_ * 2;
    return {{{sinks, case_.window_type, plan(case_.window.sink), {}},
             {recents, case_.window_type, plan(ring_), {}}},
            std::max<std::int64_t>(case_.window.sink, 1) * row,
            ring_ * row};
  }

  attention_case case_;
  int head_dim_;
  transform transform_;
  std::vector<std::int32_t> const& tables_;
  std::int64_t table_stride_;
  layout map_{};
  int step_ = 1;
  std::int64_t ring_ = 1;
  aligned_bytes codes_, sinks_, recents_;
  std::vector<rows> rows_;
  bool ok_ = true;
};

/// The whole cache.
template <class K, class V>
class coded_cache {
 public:
  using key_packing = fragment<operand::keys>;
  using value_packing = fragment<operand::values>;

  /// Awkward rows, keys with a random center and norm.
  coded_cache(attention_case const& c, random_source& random)
      : coded_cache(c, random_transform(c, random), random_rows(c, c.key_dim, random),
                    random_rows(c, c.value_dim, random)) {}

  /// These rows, of each sequence.
  coded_cache(attention_case const& c, transform const& of_keys, std::vector<rows> const& key_rows,
              std::vector<rows> const& value_rows)
      : shape(c),
        table_stride_(std::max<std::int64_t>(ceil_div(longest(c), c.page_tokens), 1)),
        pages_(table_stride_ * c.sequences() + 1),
        tables_(scattered_tables()),
        key_transform_(of_keys),
        value_transform_{c.heads, c.value_dim, {}, {}, c.value_rotation},
        keys(c, c.key_dim, key_transform_, pages_, tables_, table_stride_),
        values(c, c.value_dim, value_transform_, pages_, tables_, table_stride_) {
    for (int i = 0; i < c.sequences(); ++i) {
      keys.add(i, key_rows[static_cast<std::size_t>(i)]);
      values.add(i, value_rows[static_cast<std::size_t>(i)]);
      transforms_.push_back(key_transform_.view());
    }
  }

  cache_view<K, V, key_packing, value_packing> view() const {
    return {keys.codes(),         values.codes(), keys.windows_of(),  values.windows_of(),
            shape.window,         tables_.data(), table_stride_,      shape.sequences(),
            shape.lengths.data(), nullptr,        transforms_.data(), value_transform_.rotate};
  }

  attention_case shape;

 private:
  static std::int64_t longest(attention_case const& c) {
    return *std::max_element(c.lengths.begin(), c.lengths.end());
  }

  /// Pages in an order that is no run: every third from the pool's end, then the others.
  std::vector<std::int32_t> scattered_tables() const {
    std::vector<std::int32_t> tables;
    for (std::int64_t begin = 0; begin < 3; ++begin) {
      for (std::int64_t page = pages_ - 1 - begin; page >= 0; page -= 3) {
        tables.push_back(static_cast<std::int32_t>(page));
      }
    }
    return tables;
  }

  static transform random_transform(attention_case const& c, random_source& random) {
    transform t{c.heads, c.key_dim, {}, {}, c.key_rotation};
    for (int i = 0; i < c.heads * c.key_dim && c.shifts_keys; ++i) {
      t.center.push_back(static_cast<float>(0.5 * random.normal()));
      t.norm.push_back(static_cast<float>(0.5 + random.uniform()));
    }
    return t;
  }

  static std::vector<rows> random_rows(attention_case const& c, int head_dim,
                                       random_source& random) {
    std::vector<rows> all;
    for (std::int64_t const n : c.lengths) {
      all.push_back(awkward_rows(random, c.heads, head_dim, n));
    }
    return all;
  }

  std::int64_t table_stride_;
  std::int64_t pages_;
  std::vector<std::int32_t> tables_;
  transform key_transform_;
  transform value_transform_;
  std::vector<transform_view> transforms_;

 public:
  coded_side<K, key_packing> keys;
  coded_side<V, value_packing> values;
};

}  // namespace kvarts::test
