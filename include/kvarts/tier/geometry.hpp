// SPDX-License-Identifier: Apache-2.0
/// @file
/// A host tier as one value: layers, their codecs for K and V, heads, pages, records, and the order
/// in which all of them lie in memory.
#pragma once

#include <kvarts/tier/record.hpp>

namespace kvarts::tier {

enum class side : std::uint8_t { keys, values };

/// The order of records in the memory of one side, outermost first; engines name them so.
enum class host_layout : std::uint8_t {
  layer_first,        ///< layer, page, token
  page_first,         ///< page, token, layer
  page_first_direct,  ///< page, layer, token
  page_head,          ///< page, head, token, layer: records are of one head each
};

inline constexpr std::array host_layouts{host_layout::layer_first, host_layout::page_first,
                                         host_layout::page_first_direct, host_layout::page_head};

constexpr char const* to_string(host_layout l) noexcept {
  switch (l) {
    case host_layout::layer_first: return "layer_first";
    case host_layout::page_first: return "page_first";
    case host_layout::page_first_direct: return "page_first_direct";
    default: return "page_head";
  }
}

/// What a layer keeps of K and of V.
struct layer_kind {
  row_segments keys{};
  row_segments values{};
};

/// K and V have memory of their own, each laid out alike. Trivially copyable; fill it in, then
/// `check` it, or take it from `make_geometry`.
struct geometry {
  static constexpr int max_layers = 256;
  static constexpr int max_kinds = 4;

  std::int32_t layers = 0;
  std::int32_t heads = 0;  ///< KV heads of this rank: see `local_heads`
  std::int32_t page_tokens = 1;
  record_kind record = record_kind::row;
  order head_order = order::head_major;  ///< of page records
  std::int32_t alignment = 128;          ///< of records, in bytes: movers ask for 8, 16, 128, 4096
  host_layout placement = host_layout::layer_first;
  std::array<layer_kind, max_kinds> kinds{};
  std::array<std::uint8_t, max_layers> kind_of_layer{};  ///< overrides; all layers are of kind 0

  constexpr layer_kind const& kind(int layer) const noexcept {
    return kinds[kind_of_layer[static_cast<std::size_t>(layer)]];
  }
  constexpr row_segments const& rows(side s, int layer) const noexcept {
    return s == side::keys ? kind(layer).keys : kind(layer).values;
  }
  constexpr record_shape shape() const noexcept {
    return {placement == host_layout::page_head ? 1 : heads,
            record == record_kind::row ? 1 : page_tokens, alignment, head_order};
  }
  /// Records of a layer and side that a page has.
  constexpr std::int64_t records_per_page() const noexcept {
    record_shape const r = shape();
    return std::int64_t{heads / r.heads} * (page_tokens / r.tokens);
  }
};

/// Every layer alike.
constexpr geometry uniform_geometry(int layers, int heads, row_segments const& keys,
                                    row_segments const& values) noexcept {
  geometry g;
  g.layers = layers;
  g.heads = heads;
  g.kinds[0] = {keys, values};
  return g;
}

/// KV heads that a rank keeps under tensor parallelism: an even share, or one that several ranks
/// repeat when there are more ranks than heads. Both must be what `check_ranks` accepts.
constexpr std::int32_t local_heads(std::int32_t kv_heads, std::int32_t ranks) noexcept {
  return kv_heads > ranks ? kv_heads / ranks : 1;
}

/// Heads and ranks must divide one another.
constexpr problem check_ranks(std::int32_t kv_heads, std::int32_t ranks) noexcept {
  if (kv_heads < 1) return {status::bad_heads, "there are {} KV heads", kv_heads};
  if (ranks >= 1 && (kv_heads % ranks == 0 || ranks % kv_heads == 0)) return {};
  return {status::bad_heads, "{} KV heads cannot be split among {} ranks", kv_heads, ranks};
}

namespace detail {

/// The most tokens of a page: with it no sum of the bytes of a page overflows.
inline constexpr int max_page_tokens = 1 << 16;

constexpr layout extents_of(geometry const& g, segment const& s, std::int64_t tokens) noexcept {
  layout m;
  m.heads = g.heads;
  m.head_dim = s.head_dim;
  m.tokens = tokens;
  m.tile_tokens = tile_tokens_of(s);
  m.group = group_of(s);
  m.page_tokens = g.page_tokens;
  return m;
}

constexpr problem check_segment(geometry const& g, segment const& s) noexcept {
  if (s.codec.bits < 1 || s.codec.bits > 32) {
    return {status::unsupported, "a codec of the tier has {} bits, outside 1..{}", s.codec.bits,
            32};
  }
  bool const along_tokens = s.codec.grouped_along == axis::token;
  if (along_tokens && g.record == record_kind::row) {
    return {status::unsupported,
            "row records hold single tokens: a codec with groups of {} tokens needs page records",
            group_of(s)};
  }
  return kvarts::detail::check_extents(extents_of(g, s, g.page_tokens), s.codec);
}

constexpr problem check_rows(geometry const& g, row_segments const& rows) noexcept {
  if (rows.count < 0 || rows.count > row_segments::most) {
    return {status::unsupported, "rows have 0 to {} segments, not {}", row_segments::most,
            rows.count};
  }
  for (int i = 0; i < rows.count; ++i) {
    if (auto const p = check_segment(g, rows[i])) return p;
  }
  return {};
}

constexpr problem check_layer(geometry const& g, int layer) noexcept {
  int const kind = g.kind_of_layer[static_cast<std::size_t>(layer)];
  if (kind >= geometry::max_kinds) {
    return {status::unsupported, "layer {} is of kind {}, which a geometry does not have", layer,
            kind};
  }
  if (g.kind(layer).keys.count == 0 && g.kind(layer).values.count == 0) {
    return {status::unsupported, "layer {} keeps nothing", layer};
  }
  if (auto const p = check_rows(g, g.kind(layer).keys)) return p;
  return check_rows(g, g.kind(layer).values);
}

}  // namespace detail

/// First fault of a geometry; names the number that does not fit.
constexpr problem check(geometry const& g) noexcept {
  if (g.layers < 1 || g.layers > geometry::max_layers) {
    return {status::unsupported, "a tier has 1 to {} layers, not {}", geometry::max_layers,
            g.layers};
  }
  if (g.page_tokens < 1 || g.page_tokens > detail::max_page_tokens) {
    return {status::bad_page, "a page has 1 to {} tokens, not {}", detail::max_page_tokens,
            g.page_tokens};
  }
  if (auto const p = kvarts::detail::check_alignment(g.alignment)) return p;
  for (int layer = 0; layer < g.layers; ++layer) {
    if (auto const p = detail::check_layer(g, layer)) return p;
  }
  return {};
}

/// `check` as a status alone.
constexpr status validate(geometry const& g) noexcept { return check(g).code; }

#if defined(__cpp_exceptions)

/// `g`, checked.
inline geometry make_geometry(geometry const& g) {
  throw_if(check(g));
  return g;
}

#endif

}  // namespace kvarts::tier
