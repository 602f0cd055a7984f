// SPDX-License-Identifier: Apache-2.0
/// @file
/// Pages of all layers of a geometry at once, K and V, whatever codecs it names.
#pragma once

#include <kvarts/tier/pages.hpp>
#include <kvarts/tier/placement.hpp>

#include <array>
#include <cstdint>
#include <span>

namespace kvarts::tier {

/// How one codec moves units, behind plain functions: geometries name their codecs as values.
struct page_coder {
  codec_info info{};
  std::int64_t (*encode)(std::byte* host, layout const& map, source_view const& src,
                         page_moves const& moves, detail::pair_range range,
                         transform_view const& transform) = nullptr;
  void (*clear_padding)(std::byte* host, layout const& map, page_moves const& moves) = nullptr;
  void (*decode)(std::byte const* host, layout const& map, target_view const& dst,
                 page_moves const& moves, detail::pair_range range,
                 transform_view const& transform) = nullptr;
};

/// The coder of a codec.
template <codec_type Codec>
constexpr page_coder coder_of() noexcept {
  using prepared = kvarts::detail::prepared_transform;
  page_coder c;
  c.info = info_of<Codec>();
  c.encode = [](std::byte* host, layout const& map, source_view const& src, page_moves const& moves,
                detail::pair_range range, transform_view const& t) {
    return detail::encode_units(view<Codec>{host, map, {}}, src, moves, range,
                                prepared(t, map.head_dim));
  };
  c.clear_padding = [](std::byte* host, layout const& map, page_moves const& moves) {
    detail::clear_shared_padding(view<Codec>{host, map, {}}, moves);
  };
  c.decode = [](std::byte const* host, layout const& map, target_view const& dst,
                page_moves const& moves, detail::pair_range range, transform_view const& t) {
    detail::decode_units(view<Codec, std::byte const>{host, map, {}}, dst, moves, range,
                         prepared(t, map.head_dim));
  };
  return c;
}

/// The coders of the codecs that a geometry names: `constexpr std::array coders =
/// coders_of<row_codec<int8_head>, identity<bfloat16>>();`
template <codec_type... Codecs>
constexpr std::array<page_coder, sizeof...(Codecs)> coders_of() noexcept {
  return {coder_of<Codecs>()...};
}

/// One segment of an engine's rows, and its way to coded space. Segments of one tensor, as MLA has
/// them, are views of the same memory.
template <class Byte>
struct plain_segment {
  tensor_view<Byte> rows{};
  transform_view transform{};
};

/// One layer of an engine's plain K and V: a segment for each that the geometry names.
template <class Byte>
struct plain_layer {
  std::array<plain_segment<Byte>, row_segments::most> keys{};
  std::array<plain_segment<Byte>, row_segments::most> values{};

  constexpr plain_segment<Byte> const& at(side s, int part) const noexcept {
    return (s == side::keys ? keys : values)[static_cast<std::size_t>(part)];
  }
};

using source_layer = plain_layer<std::byte const>;
using target_layer = plain_layer<std::byte>;

/// A tier's memory: `size_bytes(g, s, pages)` bytes of K and of V. `geometry` is one that `check`
/// accepts; both it and `coders` must outlive calls.
template <class Byte>
struct basic_tier_view {
  tier::geometry const* geometry = nullptr;
  std::int64_t pages = 0;
  Byte* keys = nullptr;
  Byte* values = nullptr;
  std::span<page_coder const> coders{};

  constexpr Byte* memory(side s) const noexcept { return s == side::keys ? keys : values; }

  /// A reader's view of the same memory.
  constexpr operator basic_tier_view<std::byte const>() const noexcept
      requires(!std::is_const_v<Byte>) {
    return {geometry, pages, keys, values, coders};
  }
};

using tier_view = basic_tier_view<std::byte>;
using const_tier_view = basic_tier_view<std::byte const>;

/// Where centers and norms are: those in device memory are not checked.
enum class transforms_on : std::uint8_t { host, device };

/// Layers `begin..end-1`.
struct layer_range {
  int begin = 0;
  int end = 0;
};

namespace detail {

inline constexpr std::array sides{side::keys, side::values};

constexpr bool same_codec(codec_info const& a, codec_info const& b) noexcept {
  return std::string_view(a.name) == std::string_view(b.name) && a.bits == b.bits &&
         a.grouped_along == b.grouped_along && a.scale_bytes == b.scale_bytes &&
         a.zero_bytes == b.zero_bytes && a.plain == b.plain;
}

/// The coder of a segment, or null.
constexpr page_coder const* find_coder(std::span<page_coder const> coders,
                                       segment const& s) noexcept {
  for (page_coder const& c : coders) {
    if (same_codec(c.info, s.codec)) return &c;
  }
  return nullptr;
}

/// Calls `f(side, layer, segment)` for all segments of some layers while it returns no problem.
template <class F>
problem for_each_segment(geometry const& g, layer_range layers, F const& f) noexcept {
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    for (side const s : sides) {
      for (int part = 0; part < g.rows(s, layer).count; ++part) {
        if (problem const p = f(s, layer, part)) return p;
      }
    }
  }
  return {};
}

constexpr std::int64_t segments_of(geometry const& g, layer_range layers) noexcept {
  std::int64_t count = 0;
  for (int l = layers.begin; l < layers.end; ++l)
    count += g.kind(l).keys.count + g.kind(l).values.count;
  return count;
}

template <class Byte, class Plain>
problem check_segment_moves(basic_tier_view<Byte> const& tier, plain_segment<Plain> const& plain,
                            side s, int layer, int part, page_moves const& moves) noexcept {
  if (tier.memory(s) == nullptr || plain.rows.data == nullptr) {
    return {status::bad_plane, "layer {} has no memory for its segment {}", layer, part};
  }
  layout const m = plan_layout(*tier.geometry, s, layer, tier.pages, part);
  return check_ends(m, plain.rows.map, moves.unit_tokens);
}

/// What moves on the host need beside.
template <class Byte, class Plain>
problem check_host_segment(basic_tier_view<Byte> const& tier, plain_segment<Plain> const& plain,
                           side s, int layer, int part) noexcept {
  segment const& kept = tier.geometry->rows(s, layer)[part];
  if (find_coder(tier.coders, kept) == nullptr) {
    return {status::unsupported, "layer {} is kept in a codec that is not among the {} coders",
            layer, static_cast<std::int64_t>(tier.coders.size())};
  }
  return kvarts::check(plain.transform, tier.geometry->heads, kept.head_dim);
}

/// The tensors' smallest room, in units.
template <class Plain>
std::int64_t smallest_room(geometry const& g, std::span<plain_layer<Plain> const> plain,
                           layer_range layers, std::int64_t unit) noexcept {
  std::int64_t room = std::int64_t{1} << 31;
  static_cast<void>(for_each_segment(g, layers, [&](side s, int layer, int part) -> problem {
    auto const& rows = plain[static_cast<std::size_t>(layer - layers.begin)].at(s, part).rows;
    room = std::min(room, units_of(rows.map, unit));
    return {};
  }));
  return room;
}

/// Shares out all pairs of all segments evenly among threads: `f(side, layer, segment, range)`.
template <class F>
void for_each_share(geometry const& g, layer_range layers, page_moves const& moves,
                    F const& f) noexcept {
  std::int64_t const pairs = moves.pairs.count();
  std::int64_t const work = pairs * segments_of(g, layers);
  int const parts = parts_of(work, moves.threads);
  for_each_part(parts, [&](int i) {
    std::int64_t const begin = part_begin(work, parts, i);
    std::int64_t const end = part_begin(work, parts, i + 1);
    std::int64_t first = 0;  // of the segment's pairs
    static_cast<void>(for_each_segment(g, layers, [&](side s, int layer, int part) -> problem {
      pair_range const range{std::max<std::int64_t>(begin - first, 0),
                             std::min(end - first, pairs)};
      if (range.begin < range.end) f(i, s, layer, part, range);
      first += pairs;
      return {};
    }));
  });
}

}  // namespace detail

/// First fault of moves between some layers of a tier and `plain[0]..`, one a layer: as the other
/// `check_moves`, or a layer that is not there, or one whose codec is not among the coders. Checks
/// every layer before anything is written. A device, where transforms are, needs no coders.
template <transforms_on Place = transforms_on::host, class Byte, class Plain>
problem check_moves(basic_tier_view<Byte> const& tier, std::span<plain_layer<Plain> const> plain,
                    layer_range layers, page_moves const& moves, bool to_coded) noexcept {
  geometry const& g = *tier.geometry;
  if (layers.begin < 0 || layers.end < layers.begin || layers.end > g.layers) {
    return {status::unsupported, "there are no layers {} to {} in the tier", layers.begin,
            std::int64_t{layers.end} - 1};
  }
  if (plain.size() != static_cast<std::size_t>(layers.end - layers.begin)) {
    return {status::unsupported, "there are tensors of {} layers where {} move",
            static_cast<std::int64_t>(plain.size()), layers.end - layers.begin};
  }
  if (auto const p = check_threads(moves.threads)) return p;
  auto const p = detail::for_each_segment(g, layers, [&](side s, int layer, int part) -> problem {
    auto const& rows = plain[static_cast<std::size_t>(layer - layers.begin)].at(s, part);
    if (auto const q = detail::check_segment_moves(tier, rows, s, layer, part, moves)) return q;
    if constexpr (Place == transforms_on::device) return {};
    return detail::check_host_segment(tier, rows, s, layer, part);
  });
  if (p) return p;
  std::int64_t const host = tier.pages * g.page_tokens / moves.unit_tokens;
  std::int64_t const device = detail::smallest_room(g, plain, layers, moves.unit_tokens);
  return check(moves.pairs, to_coded ? host : device, to_coded ? device : host);
}

/// Encodes pages (or tokens) of some layers, K and V: `plain[i]` is layer `layers.begin + i`. On
/// any status but `ok`, which `check_moves` explains, nothing was written; else the bytes are those
/// of `encode_pages` of each segment. The work of all layers is shared evenly among the threads.
inline encode_result encode_layers(tier_view const& tier, std::span<source_layer const> plain,
                                   layer_range layers, page_moves const& moves) noexcept {
  if (auto const p = check_moves(tier, plain, layers, moves, true)) return {p.code};
  geometry const& g = *tier.geometry;
  std::array<std::int64_t, max_threads> nonfinite{};
  auto const encode = [&](int thread, side s, int layer, int part, detail::pair_range range) {
    auto const& from = plain[static_cast<std::size_t>(layer - layers.begin)].at(s, part);
    page_coder const& c = *detail::find_coder(tier.coders, g.rows(s, layer)[part]);
    nonfinite[static_cast<std::size_t>(thread)] +=
        c.encode(tier.memory(s), plan_layout(g, s, layer, tier.pages, part), from.rows, moves,
                 range, from.transform);
  };
  detail::for_each_share(g, layers, moves, encode);
  static_cast<void>(
      detail::for_each_segment(g, layers, [&](side s, int layer, int part) -> problem {
        page_coder const& c = *detail::find_coder(tier.coders, g.rows(s, layer)[part]);
        c.clear_padding(tier.memory(s), plan_layout(g, s, layer, tier.pages, part), moves);
        return {};
      }));
  encode_result result;
  for (std::int64_t const n : nonfinite) result.nonfinite += n;
  return result;
}

/// Decodes pages (or tokens) of some layers, K and V, back to model space; as `encode_layers`.
inline status decode_layers(const_tier_view const& tier, std::span<target_layer const> plain,
                            layer_range layers, page_moves const& moves) noexcept {
  if (auto const p = check_moves(tier, plain, layers, moves, false)) return p.code;
  geometry const& g = *tier.geometry;
  auto const decode = [&](int, side s, int layer, int part, detail::pair_range range) {
    auto const& to = plain[static_cast<std::size_t>(layer - layers.begin)].at(s, part);
    page_coder const& c = *detail::find_coder(tier.coders, g.rows(s, layer)[part]);
    c.decode(tier.memory(s), plan_layout(g, s, layer, tier.pages, part), to.rows, moves, range,
             to.transform);
  };
  detail::for_each_share(g, layers, moves, decode);
  return status::ok;
}

}  // namespace kvarts::tier
