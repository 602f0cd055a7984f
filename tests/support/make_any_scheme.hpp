// SPDX-License-Identifier: Apache-2.0
/// @file
/// Makes an `any_scheme` of a scheme, which takes a second to compile for each.
#pragma once

#include "support/any_cache.hpp"

#include <kvarts/attention.hpp>
#include <kvarts/decode.hpp>
#include <kvarts/paged_cache.hpp>
#include <kvarts/scheme.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kvarts::test {

template <codec_type KeyCodec, codec_type ValueCodec>
class any_cache_of final : public any_cache {
 public:
  any_cache_of(scheme<KeyCodec, ValueCodec> const& s, cache_options const& o)
      : scheme_(s), cache_(s, o) {}

  int add() override { return cache_.add(); }
  status remove(int sequence) override { return cache_.remove(sequence); }
  encode_result append(int sequence, source_view keys, source_view values) override {
    return cache_.append(sequence, keys, values);
  }
  status freeze(int sequence, transform const& t) override { return cache_.freeze(sequence, t); }
  int fork(int sequence) override { return cache_.fork(sequence); }
  status crop(int sequence, std::int64_t tokens) override { return cache_.crop(sequence, tokens); }
  status reorder(std::vector<int> const& parents) override { return cache_.reorder(parents); }
  status move_page(std::int32_t from, std::int32_t to) override {
    return cache_.move_page(from, to);
  }
  bool exists(int sequence) const override { return cache_.exists(sequence); }
  bool frozen(int sequence) const override { return cache_.frozen(sequence); }
  std::int64_t length(int sequence) const override { return cache_.length(sequence); }
  std::int64_t free_pages() const override { return cache_.free_pages(); }
  std::int64_t memory_bytes() const override { return cache_.memory_bytes(); }

  content read(int sequence) const override {
    return read_content(cache_.view().sequence(sequence));
  }

  content expected(rows const& k, rows const& v, std::int64_t tokens,
                   transform const* t) const override {
    bool const coding = t != nullptr || !needs_data(scheme_.keys);
    transform_view const of_keys =
        t != nullptr ? t->view() : transform_view{.rotate = key_rotation(scheme_.keys)};
    transform_view const of_values{nullptr, nullptr, 0, value_rotation(scheme_.values)};
    dtype const type = cache_.options().window_type;
    return {expected_side<KeyCodec>(k, tokens, scheme_.window, type, of_keys, coding),
            expected_side<ValueCodec>(v, tokens, scheme_.window, type, of_values, coding)};
  }

  std::vector<std::byte> memory() const override {
    auto const c = cache_.view();
    std::vector<std::byte> all;
    append_bytes(all, c.keys.data, static_cast<std::size_t>(c.keys.map.size_bytes()));
    append_bytes(all, c.values.data, static_cast<std::size_t>(c.values.map.size_bytes()));
    auto const slots = static_cast<std::size_t>(c.sequences);
    for (auto const* w : {&c.key_windows, &c.value_windows}) {
      append_bytes(all, w->first.sinks.data, slots * static_cast<std::size_t>(w->sink_stride));
    }
    append_bytes(all, c.block_tables, slots * static_cast<std::size_t>(c.table_stride));
    append_bytes(all, c.lengths, slots);
    append_bytes(all, c.frozen, slots);
    return all;
  }
  std::vector<std::byte> page(std::int32_t index) const override {
    auto const c = cache_.view();
    std::vector<std::byte> all;
    auto const add_page = [&](auto const& codes) {
      std::int64_t const bytes = codes.map.codes.page_stride;
      append_bytes(all, codes.data + index * bytes, static_cast<std::size_t>(bytes));
    };
    add_page(c.keys);
    add_page(c.values);
    return all;
  }
  std::vector<std::int32_t> table(int sequence) const override {
    auto const t = cache_.view().sequence(sequence).keys.table;
    return {t.pages, t.pages + t.count};
  }

  status attend(int sequence, int query_tokens, int query_heads, float const* queries,
                float* output, float* lse, attention_options const& o) const override {
    return attention(cache_.view().sequence(sequence), query_tokens, query_heads, queries, output,
                     lse, o);
  }
  void coded_key(int sequence, int head, std::int64_t position, float* row) const override {
    decode_row(cache_.view().sequence(sequence).keys, head, position, row);
  }
  void coded_value(int sequence, int head, std::int64_t position, float* row) const override {
    decode_row(cache_.view().sequence(sequence).values, head, position, row);
  }

 private:
  scheme<KeyCodec, ValueCodec> scheme_;
  paged_cache<KeyCodec, ValueCodec> cache_;
};

template <codec_type KeyCodec, codec_type ValueCodec>
any_scheme make_any_scheme(scheme<KeyCodec, ValueCodec> const& s) {
  any_scheme a;
  a.name = s.name;
  a.window = s.window;
  a.keys = info_of<KeyCodec>();
  a.values = info_of<ValueCodec>();
  auto const step = [](codec_info const& c) {
    return c.grouped_along != axis::token ? 1 : (c.group != dynamic_group ? c.group : 32);
  };
  a.key_step = step(a.keys);
  a.value_step = step(a.values);
  a.waits = needs_data(s.keys);
  a.centered = needs_calibration(s.keys);
  a.normed = a.waits;
  a.key_rotation = key_rotation(s.keys);
  a.of_values = value_rotation(s.values);
  a.make = [s](cache_options const& o) {
    return std::make_unique<any_cache_of<KeyCodec, ValueCodec>>(s, o);
  };
  return a;
}

}  // namespace kvarts::test
