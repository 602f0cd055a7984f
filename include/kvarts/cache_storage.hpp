// SPDX-License-Identifier: Apache-2.0
/// @file
/// The memory of an owning cache: pools of coded pages and the 16-bit windows of every sequence.
#pragma once

#include <kvarts/append.hpp>
#include <kvarts/make_layout.hpp>
#include <kvarts/scheme.hpp>
#include <kvarts/tensor.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace kvarts {

/// Extents of an owning cache of one layer.
struct cache_options {
  std::int32_t heads = 0;          ///< KV heads
  std::int32_t key_dim = 0;        ///< head_dim of keys
  std::int32_t value_dim = 0;      ///< head_dim of values; 0 means that of keys
  std::int32_t sequences = 1;      ///< slots
  std::int32_t pages = 1;          ///< of the pool that all sequences share
  std::int32_t page_tokens = 0;    ///< P
  std::int32_t append_slots = 32;  ///< room in the ring beyond the recent window
  std::int32_t prefill_room =
      0;  ///< tokens that fit before a transform is frozen (beyond the sinks)
  dtype window_type = dtype::f16;  ///< f16 or bf16
  std::int32_t alignment = 128;
};

#if defined(__cpp_exceptions)

namespace detail {

/// Codes and windows of one of K or V for all sequences.
template <codec_type Codec>
class side_storage {
 public:
  /// `room` is the ring's length in tokens, whole groups.
  side_storage(int head_dim, std::int64_t room, windows w, cache_options const& o)
      : window_(w),
        codes_map_(
            make_pages<Codec>(o.heads, head_dim, o.pages, o.page_tokens, {0, 0, o.alignment})),
        sinks_(make_tensor_layout(o.window_type, o.heads, head_dim, w.sink,
                                  contiguous(order::token_major, o.heads, head_dim, w.sink))),
        recents_(make_tensor_layout(o.window_type, o.heads, head_dim, room,
                                    contiguous(order::token_major, o.heads, head_dim, room))),
        type_(o.window_type),
        codes_(static_cast<std::size_t>(codes_map_.size_bytes())),
        rows_(
            static_cast<std::size_t>((sinks_.size_bytes() + recents_.size_bytes()) * o.sequences)) {
  }

  side<Codec> at(int sequence, block_table table, transform_view const& t) noexcept {
    return {
        {codes_.data(), codes_map_, table}, planes(rows_.data()).sequence(sequence), t, window_};
  }

  view<Codec, std::byte const> codes() const noexcept { return {codes_.data(), codes_map_, {}}; }
  window_planes<std::byte const> windows_of_all() const noexcept { return planes(rows_.data()); }

  /// Copies the 16-bit rows of one sequence to another slot.
  void copy_windows(int from, int to) noexcept {
    std::copy_n(rows_.data() + from * window_bytes(), window_bytes(),
                rows_.data() + to * window_bytes());
  }

  /// Copies a page of codes, parameters and padding.
  void copy_page(std::int64_t from, std::int64_t to) noexcept {
    std::copy_n(page(from), page_bytes(), page(to));
  }
  /// Zeros a page, so that what its last owner left cannot be told from what was never coded.
  void clear_page(std::int64_t index) noexcept {
    std::fill_n(page(index), page_bytes(), std::byte{0});
  }

  /// The windows with those of slot i taken from slot parents[i]; negative parents leave theirs.
  std::vector<std::byte> reordered(std::vector<int> const& parents) const {
    std::vector<std::byte> rows = rows_;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      if (parents[i] < 0) continue;
      std::copy_n(rows_.data() + parents[i] * window_bytes(), window_bytes(),
                  rows.data() + static_cast<std::int64_t>(i) * window_bytes());
    }
    return rows;
  }
  void replace_windows(std::vector<std::byte>& rows) noexcept { rows_.swap(rows); }

  std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(codes_.size() + rows_.size());
  }

 private:
  std::int64_t page_bytes() const noexcept { return codes_map_.codes.page_stride; }
  std::byte* page(std::int64_t index) noexcept { return codes_.data() + index * page_bytes(); }
  std::int64_t window_bytes() const noexcept { return sinks_.size_bytes() + recents_.size_bytes(); }

  template <class Byte>
  window_planes<Byte> planes(Byte* rows) const noexcept {
    return {{{rows, type_, sinks_, {}}, {rows + sinks_.size_bytes(), type_, recents_, {}}},
            window_bytes(),
            window_bytes()};
  }

  windows window_;
  layout codes_map_;
  layout sinks_;
  layout recents_;
  dtype type_;
  std::vector<std::byte> codes_;
  std::vector<std::byte> rows_;
};

/// How many tokens of a codec leave the window at a time in an owning cache.
template <codec_type Codec>
inline constexpr int cache_step = eviction_step(Codec::grouped_along,
                                                group_or_default(info_of<Codec>(), 0));

/// Tokens of the ring: the recent window, what waits for a whole step, and the larger of the slots
/// for appends and the prefill before freezing; whole groups, so that none is cut by the ring's
/// end.
template <codec_type KeyCodec, codec_type ValueCodec>
std::int64_t ring_room(windows w, cache_options const& o) noexcept {
  constexpr int waiting = std::max(cache_step<KeyCodec>, cache_step<ValueCodec>) - 1;
  constexpr int whole_steps = std::lcm(cache_step<KeyCodec>, cache_step<ValueCodec>);
  std::int64_t const steady = std::int64_t{w.recent} + waiting + std::max(o.append_slots, 1);
  return round_up(std::max<std::int64_t>(steady, o.prefill_room), whole_steps);
}

/// Windows must fit the codecs, counts be positive and the window type one of 16 bits; layouts
/// check the rest.
template <codec_type KeyCodec, codec_type ValueCodec>
void check_options(windows w, cache_options const& o) {
  throw_if(check(w, KeyCodec::grouped_along, cache_step<KeyCodec>));
  throw_if(check(w, ValueCodec::grouped_along, cache_step<ValueCodec>));
  if (o.sequences < 1) {
    throw_if({status::bad_sequence, "a cache has {} slots for sequences", o.sequences});
  }
  if (o.pages < 1) throw_if({status::bad_page, "a cache has {} pages", o.pages});
  if (o.append_slots < 0 || o.prefill_room < 0) {
    throw_if({status::bad_window, "room for {} appended and {} prefilled tokens", o.append_slots,
              o.prefill_room});
  }
  if (o.window_type == dtype::f32) {
    throw_if({status::unsupported, "windows hold 16-bit values: f16 or bf16, not f32"});
  }
}

}  // namespace detail

#endif

}  // namespace kvarts
