// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a sequence of a cache holds, position by position, wherever it lies; and what it should
/// hold, from its rows alone.
#pragma once

#include "support/rows.hpp"

#include <kvarts/cache_view.hpp>
#include <kvarts/decode.hpp>
#include <kvarts/make_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvarts::test {

/// One of K or V of a sequence.
struct side_content {
  partition parts{};
  std::vector<std::byte> coded;   ///< [position, head]: codes and parameters, or 16-bit values
  std::vector<std::byte> window;  ///< [position, head]: the 16-bit rows that are not coded

  friend bool operator==(side_content const&, side_content const&) = default;
};

struct content {
  side_content keys{};
  side_content values{};

  friend bool operator==(content const&, content const&) = default;
};

template <class T>
void append_bytes(std::vector<std::byte>& to, T const* from, std::size_t count) {
  auto const* const bytes = reinterpret_cast<std::byte const*>(from);
  to.insert(to.end(), bytes, bytes + count * sizeof(T));
}

/// Codes and parameters of one coded row.
template <codec_type Codec>
void append_coded(std::vector<std::byte>& to, view<Codec, std::byte const> const& codes, int head,
                  std::int64_t token) {
  int const head_dim = codes.map.head_dim;
  if constexpr (Codec::plain) {
    std::vector<float> row(static_cast<std::size_t>(head_dim));
    decode_row(codes, head, token, row.data());
    append_bytes(to, row.data(), row.size());
  } else {
    std::vector<std::uint8_t> row(static_cast<std::size_t>(head_dim));
    load_codes(codes, head, token, row.data());
    append_bytes(to, row.data(), row.size());
    int const run = Codec::grouped_along == axis::row       ? head_dim
                    : Codec::grouped_along == axis::channel ? codes.map.group
                                                            : 1;
    for (int d = 0; d < head_dim; d += run) {
      auto const p = load_parameters(codes, head, token, d);
      append_bytes(to, &p.scale, 1);
      append_bytes(to, &p.zero, 1);
    }
  }
}

template <codec_type Codec>
side_content read_side(view<Codec, std::byte const> const& codes,
                       window_view<std::byte const> const& window, partition const& parts) {
  side_content c{parts, {}, {}};
  for (std::int64_t t = 0; t < parts.tokens; ++t) {
    bool const coded = t >= parts.sinks && t < parts.coded_end;
    for (int h = 0; h < codes.map.heads; ++h) {
      if (coded)
        append_coded(c.coded, codes, h, t);
      else
        append_bytes(c.window, window.row(h, t), static_cast<std::size_t>(codes.map.head_dim) * 2);
    }
  }
  return c;
}

/// What readers see of a sequence.
template <codec_type KeyCodec, codec_type ValueCodec>
content read_content(sequence_view<KeyCodec, ValueCodec> const& s) {
  return {read_side(s.keys, s.key_window, s.key_parts),
          read_side(s.values, s.value_window, s.value_parts)};
}

/// Rows `from..from+count-1` of a tensor without pages.
inline source_view slice(source_view all, std::int64_t from, std::int64_t count) {
  all.data = all.data + from * all.map.codes.tile_stride;
  all.map.tokens = count;
  return all;
}

/// The first `tokens` rows of `x`, stored at once: windows in 16 bits, and what is due coded by one
/// call from there. `coding` is false while a transform is awaited.
template <codec_type Codec>
side_content expected_side(rows const& x, std::int64_t tokens, windows w, dtype window_type,
                           transform_view const& t, bool coding) {
  auto const rounded = contiguous_memory(x, window_type);
  layout const map = make_head_tiles<Codec>(x.heads, x.head_dim, std::max<std::int64_t>(tokens, 1));
  std::int64_t const step = Codec::grouped_along == axis::token ? map.group : 1;
  std::int64_t const sinks = std::min<std::int64_t>(tokens, w.sink);
  std::int64_t const excess = std::max<std::int64_t>(tokens - w.sink - w.recent, 0);
  partition const parts{sinks, coding ? sinks + excess / step * step : sinks, tokens};

  std::vector<std::byte> bytes(static_cast<std::size_t>(map.size_bytes()));
  view<Codec> const codes{bytes.data(), map, {}};
  if (parts.coded() > 0) {
    auto const result = encode(codes, slice(rounded.source(), parts.sinks, parts.coded()),
                               {parts.sinks, parts.coded_end}, t);
    if (result.code != status::ok) throw error(result.code, "expected_side");
  }
  source_view const all = rounded.source();
  // A ring that holds every row.
  window_view<std::byte const> const window{slice(all, 0, 0), all};
  return read_side(view<Codec, std::byte const>(codes), window, parts);
}

}  // namespace kvarts::test
