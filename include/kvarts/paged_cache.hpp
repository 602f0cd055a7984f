// SPDX-License-Identifier: Apache-2.0
/// @file
/// An owning host cache of many sequences over one pool of pages.
#pragma once

#include <kvarts/cache_storage.hpp>
#include <kvarts/sequence_table.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions)

namespace kvarts {

/// One layer of many sequences: appends tokens, codes what leaves the 16-bit windows, shares pages
/// between forks until one writes. A sequence's content is a function of its tokens and its frozen
/// transform alone. All memory is allocated when the cache is made; calls that fail change nothing.
///
/// Schemes whose key transform needs no data code at once; the others keep everything in 16 bits
/// until `freeze`. Sequences are numbered slots. Not thread-safe: one thread at a time.
template <codec_type KeyCodec, codec_type ValueCodec>
class paged_cache {
 public:
  /// Throws `error` naming what does not fit: extents, windows, or a page that token groups do not
  /// divide.
  paged_cache(scheme<KeyCodec, ValueCodec> const& s, cache_options o)
      : scheme_(s),
        options_(checked(s.window, o)),
        room_(detail::ring_room<KeyCodec, ValueCodec>(s.window, options_)),
        keys_(options_.key_dim, room_, s.window, options_),
        values_(options_.value_dim, room_, s.window, options_),
        table_(options_.sequences, options_.pages) {}

  /// A new empty sequence, or -1 when every slot is taken.
  int add() noexcept {
    return table_.add(scheme_.window.sink, !needs_data(scheme_.keys),
                      {nullptr, nullptr, 0, key_rotation(scheme_.keys)});
  }

  /// Ends a sequence; pages that nobody else shares become free.
  status remove(int sequence) noexcept {
    if (!exists(sequence)) return status::bad_sequence;
    table_.remove(sequence);
    return status::ok;
  }

  /// Ends all sequences.
  void clear() noexcept {
    for (int i = 0; i < options_.sequences; ++i) table_.remove(i);
  }

  /// Appends rows `[tokens, heads, head_dim]` of keys and values (in order, of any strides and
  /// types). Rows are rounded to the window's 16-bit type first. `no_window_room` when nothing may
  /// be coded yet, `no_pages` when the pool is exhausted; then nothing has changed.
  encode_result append(int sequence, source_view keys, source_view values) noexcept {
    if (!exists(sequence)) return {status::bad_sequence};
    if (auto const s = check_rows(keys, values); s != status::ok) return {s};
    std::int64_t const before = length(sequence);
    std::int64_t const after = before + keys.map.tokens;
    bool const coding = frozen(sequence);
    if (!coding && after - scheme_.window.sink > room_) return {status::no_window_room};
    if (coding) {
      if (auto const s = own_pages(sequence, {before, after}); s != status::ok) return {s};
    }
    auto const k = detail::append_side(key_side(sequence), keys, before, coding);
    auto const v = detail::append_side(value_side(sequence), values, before, coding);
    table_.set_length(sequence, after, std::max(table_.ring_begin(sequence), after - room_));
    return {k.code != status::ok ? k.code : v.code, k.nonfinite + v.nonfinite};
  }

  /// Fixes a sequence's key transform (from a transform file, `calibrate` or `innerq_norm`) and
  /// codes what is due. `bad_transform` for another geometry or a second freeze; `no_pages` as for
  /// appends.
  status freeze(int sequence, transform t) {
    return freeze(sequence, std::make_shared<transform const>(std::move(t)));
  }

  /// `freeze` with a transform that several sequences share.
  status freeze(int sequence, std::shared_ptr<transform const> t) noexcept {
    if (!exists(sequence)) return status::bad_sequence;
    if (frozen(sequence) || t == nullptr) return status::bad_transform;
    if (auto const p = check(*t, options_.heads, options_.key_dim)) return p.code;
    std::int64_t const tokens = length(sequence);
    if (auto const s = own_pages(sequence, {0, tokens}); s != status::ok) return s;
    table_.freeze(sequence, std::move(t));
    std::int64_t const sink = scheme_.window.sink;
    auto const keys = key_side(sequence);
    auto const values = value_side(sequence);
    auto const k = detail::code_positions(keys, sink, keys.coded_end(tokens, true));
    auto const v = detail::code_positions(values, sink, values.coded_end(tokens, true));
    return k != status::ok ? k : v;
  }

  /// A new sequence with the same content, or -1 when every slot is taken. Pages are shared until
  /// either writes to one.
  int fork(int sequence) noexcept {
    if (!exists(sequence)) return -1;
    int const copy = add();
    if (copy < 0) return -1;
    keys_.copy_windows(sequence, copy);
    values_.copy_windows(sequence, copy);
    table_.share(sequence, copy);
    return copy;
  }

  /// Forgets the tokens from `tokens` on. The result equals a sequence that never had them;
  /// `not_recoverable` when rows that would be in a 16-bit window again exist only as codes,
  /// `bad_tokens` past the end.
  status crop(int sequence, std::int64_t tokens) noexcept {
    if (!exists(sequence)) return status::bad_sequence;
    if (tokens < 0 || tokens > length(sequence)) return status::bad_tokens;
    std::int64_t const keys_end = key_side(sequence).coded_end(tokens, frozen(sequence));
    std::int64_t const values_end = value_side(sequence).coded_end(tokens, frozen(sequence));
    std::int64_t const held = table_.ring_begin(sequence);
    std::int64_t const needed = std::min(keys_end, values_end);
    bool const windows_empty = needed >= tokens;
    if (!windows_empty && needed < held) return status::not_recoverable;
    table_.set_length(sequence, tokens,
                      std::max<std::int64_t>(std::min(held, tokens), scheme_.window.sink));
    std::int64_t const coded = std::max(keys_end, values_end);
    bool const any = coded > scheme_.window.sink;
    table_.release_pages(sequence, any ? ceil_div(coded, options_.page_tokens) : 0);
    return status::ok;
  }

  /// Beam search: slot i takes the content of slot parents[i] (one entry a slot, -1 for none).
  /// Allocates before it changes anything; throws only `std::bad_alloc`.
  status reorder(std::vector<int> const& parents) {
    if (parents.size() != static_cast<std::size_t>(options_.sequences)) return status::bad_sequence;
    for (int const parent : parents) {
      if (parent != -1 && !exists(parent)) return status::bad_sequence;
    }
    auto key_rows = keys_.reordered(parents);
    auto value_rows = values_.reordered(parents);
    table_.replace(table_.reordered(parents));
    keys_.replace_windows(key_rows);
    values_.replace_windows(value_rows);
    return status::ok;
  }

  /// Moves a page to a free one, for compaction; all its sequences follow.
  status move_page(std::int32_t from, std::int32_t to) noexcept {
    if (!table_.can_move(from, to)) return status::bad_page;
    keys_.copy_page(from, to);
    values_.copy_page(from, to);
    table_.move_page(from, to);
    return status::ok;
  }

  /// Everything for readers; valid until the next call that changes the cache.
  cache_view<KeyCodec, ValueCodec> view() const noexcept {
    return {keys_.codes(),          values_.codes(),
            keys_.windows_of_all(), values_.windows_of_all(),
            scheme_.window,         table_.tables(),
            options_.pages,         options_.sequences,
            table_.lengths(),       table_.all_frozen(),
            table_.transforms(),    value_rotation(scheme_.values)};
  }

  bool exists(int sequence) const noexcept { return table_.exists(sequence); }
  bool frozen(int sequence) const noexcept { return table_.frozen(sequence); }
  std::int64_t length(int sequence) const noexcept { return table_.length(sequence); }
  std::int64_t free_pages() const noexcept { return table_.free_pages(); }
  cache_options const& options() const noexcept { return options_; }

  /// Bytes of codes, parameters and windows, as the layouts say.
  std::int64_t memory_bytes() const noexcept { return keys_.bytes() + values_.bytes(); }

 private:
  static cache_options checked(windows w, cache_options o) {
    detail::check_options<KeyCodec, ValueCodec>(w, o);
    if (o.value_dim == 0) o.value_dim = o.key_dim;
    return o;
  }
  detail::side<KeyCodec> key_side(int i) noexcept {
    return keys_.at(i, table_.table(i), table_.transform_of(i));
  }
  detail::side<ValueCodec> value_side(int i) noexcept {
    return values_.at(i, table_.table(i), {nullptr, nullptr, 0, value_rotation(scheme_.values)});
  }

  status check_rows(source_view const& keys, source_view const& values) const noexcept {
    if (keys.map.head_dim != options_.key_dim) return status::bad_head_dim;
    if (values.map.head_dim != options_.value_dim) return status::bad_head_dim;
    if (keys.map.heads != options_.heads) return status::bad_heads;
    if (values.map.heads != options_.heads) return status::bad_heads;
    token_range const all{0, keys.map.tokens};
    if (values.map.tokens != all.end) return status::bad_tokens;
    auto const code = detail::check_range(keys.map, keys.table, all);
    return code != status::ok ? code : detail::check_range(values.map, values.table, all);
  }

  /// Makes every page that growing from `tokens.begin` to `tokens.end` tokens codes into present
  /// and unshared (copy on write); takes all or none.
  status own_pages(int sequence, token_range tokens) noexcept {
    std::int64_t const size = options_.page_tokens;
    token_range const keys = newly_coded(key_side(sequence), sequence, tokens);
    token_range const values = newly_coded(value_side(sequence), sequence, tokens);
    auto const touches = [size](token_range r, std::int64_t p) {
      return r.size() > 0 && r.begin < (p + 1) * size && r.end > p * size;
    };
    auto const missing = [&](std::int64_t p) {
      bool const written = touches(keys, p) || touches(values, p);
      return written && (p >= options_.pages || table_.needs_page(sequence, p));
    };
    std::int64_t const begin = std::min(keys.begin, values.begin) / size;
    std::int64_t const end = ceil_div(std::max(keys.end, values.end), size);
    std::int64_t needed = 0;
    for (std::int64_t p = begin; p < end; ++p) {
      if (!missing(p)) continue;
      if (p >= options_.pages || ++needed > table_.free_pages()) return status::no_pages;
    }
    for (std::int64_t p = begin; p < end; ++p) {
      if (missing(p)) fill_page(sequence, p);
    }
    return status::ok;
  }

  template <class Side>
  token_range newly_coded(Side const& side, int sequence, token_range tokens) const noexcept {
    std::int64_t const sink = scheme_.window.sink;
    return {frozen(sequence) ? side.coded_end(tokens.begin, true) : sink,
            side.coded_end(tokens.end, true)};
  }

  void fill_page(int sequence, std::int64_t p) noexcept {
    std::int32_t const shared = table_.own_page(sequence, p);
    std::int32_t const own = table_.table(sequence).pages[p];
    if (shared < 0) {
      keys_.clear_page(own);
      values_.clear_page(own);
    } else {
      keys_.copy_page(shared, own);
      values_.copy_page(shared, own);
    }
  }

  scheme<KeyCodec, ValueCodec> scheme_;
  cache_options options_;
  std::int64_t room_;
  detail::side_storage<KeyCodec> keys_;
  detail::side_storage<ValueCodec> values_;
  sequence_table table_;
};

}  // namespace kvarts

#endif
