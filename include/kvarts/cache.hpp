// SPDX-License-Identifier: Apache-2.0
/// @file
/// An owning host cache of one sequence.
#pragma once

#include <kvarts/paged_cache.hpp>

#include <cstdint>
#include <numeric>
#include <utility>

#if defined(__cpp_exceptions)

namespace kvarts {

/// One layer of one sequence, of which `room` positions (rounded up to whole tiles) can be coded;
/// the recent window lies beyond. A `paged_cache` with one slot whose only page holds the whole
/// sequence, so codes of a head lie one after another.
template <codec_type KeyCodec, codec_type ValueCodec>
class cache {
 public:
  /// `o.sequences`, `o.pages` and `o.page_tokens` are set here. Throws `error` for a room below 1
  /// and as `paged_cache` does.
  cache(scheme<KeyCodec, ValueCodec> const& s, std::int32_t room, cache_options o)
      : pages_(s, whole(o, room)) {
    pages_.add();
  }

  /// See `paged_cache::append`; `no_pages` when the room is full.
  encode_result append(source_view keys, source_view values) noexcept {
    return pages_.append(0, keys, values);
  }
  /// See `paged_cache::freeze`.
  status freeze(transform t) { return pages_.freeze(0, std::move(t)); }
  /// See `paged_cache::crop`.
  status crop(std::int64_t tokens) noexcept { return pages_.crop(0, tokens); }
  /// Forgets everything, the frozen transform too.
  void clear() noexcept {
    pages_.clear();
    pages_.add();
  }

  bool frozen() const noexcept { return pages_.frozen(0); }
  std::int64_t length() const noexcept { return pages_.length(0); }
  std::int64_t memory_bytes() const noexcept { return pages_.memory_bytes(); }

  /// For readers; valid until the next call that changes the cache.
  sequence_view<KeyCodec, ValueCodec> view() const noexcept { return pages_.view().sequence(0); }

 private:
  static cache_options whole(cache_options o, std::int32_t room) {
    if (room < 1) throw_if({status::bad_tokens, "a cache has room for {} tokens", room});
    o.sequences = 1;
    o.pages = 1;
    o.page_tokens = static_cast<std::int32_t>(round_up(room, whole_tiles));
    return o;
  }
  /// Whole groups of both codecs, in tiles of the usual size.
  static constexpr std::int64_t whole_tiles =
      std::lcm(32, std::lcm(detail::cache_step<KeyCodec>, detail::cache_step<ValueCodec>));

  paged_cache<KeyCodec, ValueCodec> pages_;
};

}  // namespace kvarts

#endif
