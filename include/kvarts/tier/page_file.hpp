// SPDX-License-Identifier: Apache-2.0
/// @file
/// Pages of a tier as files: one contiguous piece of bytes of a fixed size, for disks and networks,
/// that is restored as a whole or not at all. This header reads and writes bytes in memory; files,
/// sockets and what they are called are the caller's.
#pragma once

#include <kvarts/tier/page_match.hpp>
#include <kvarts/tier/placement.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace kvarts::tier {

/// What the page files of a tier have in common; made once, since its digest reads every transform.
struct page_format {
  geometry shape{};
  dtype source = dtype::bf16;
  sha256_digest configuration{};

  page_format() noexcept = default;
  /// For a configuration that `check` accepts.
  explicit page_format(page_config const& c) noexcept
      : shape(c.shape), source(c.source), configuration(namespace_digest(c)) {}
};

/// All layers of one side on the only rank.
constexpr page_place whole_page(geometry const& g, side s, sha256_digest const& key = {}) noexcept {
  return {s, 0, g.layers, 0, g.heads, key};
}

/// The same tier with `count` of its layers alone, from `first` on: with one page its memory of K
/// or of V is the payload of a page file, which views can read as it is.
constexpr geometry layers_of(geometry const& g, int first, int count) noexcept {
  geometry part = g;
  part.layers = count;
  for (int i = 0; i < count; ++i) {
    part.kind_of_layer[static_cast<std::size_t>(i)] =
        g.kind_of_layer[static_cast<std::size_t>(first + i)];
  }
  return part;
}

namespace detail {

/// Calls `copy(offset in the tier, offset in the payload, bytes)` for the runs of bytes that a page
/// has in both: records, and those that lie one after another together.
template <class Copy>
void for_each_run(geometry const& g, page_place const& at, std::int64_t pages, std::int64_t page,
                  Copy copy) noexcept {
  geometry const part = layers_of(g, at.first_layer, at.layers);
  int const heads = g.heads / g.shape().heads;
  std::int64_t const records = g.page_tokens / g.shape().tokens;
  for (int layer = 0; layer < at.layers; ++layer) {
    std::int64_t const own = record_bytes(part, at.which, layer);
    record_strides const there = strides_of(g, at.which, at.first_layer + layer, pages);
    record_strides const here = strides_of(part, at.which, layer, 1);
    bool const run = there.record == own && here.record == own;
    std::int64_t const count = run ? 1 : records;
    for (int head = 0; head < heads; ++head) {
      std::int64_t const from = there.base + page * there.page + head * there.head;
      std::int64_t const to = here.base + head * here.head;
      for (std::int64_t i = 0; i < count; ++i) {
        copy(from + i * there.record, to + i * here.record, run ? records * own : own);
      }
    }
  }
}

constexpr kvt_scale_type scale_type_of(codec_info const& c) noexcept {
  if (c.scale_bytes == 0) return kvt_scale_type::none;
  if (c.scale_type == dtype::f32) return kvt_scale_type::f32;
  return c.scale_type == dtype::bf16 ? kvt_scale_type::bf16 : kvt_scale_type::f16;
}

/// The .kvt fields of a page whose first segment is `s`.
constexpr kvt_header base_of(geometry const& g, segment const& s, dtype source) noexcept {
  kvt_header h;
  h.set_codec_name(std::string_view(s.codec.name));
  h.code_bits = static_cast<std::uint8_t>(s.codec.bits);
  if (s.codec.grouped_along == axis::channel) h.group_axis = kvt_group_axis::channels;
  if (s.codec.grouped_along == axis::token) h.group_axis = kvt_group_axis::tokens;
  h.scale_type = scale_type_of(s.codec);
  h.zero_points = s.codec.zero_bytes > 0 ? 1 : 0;
  h.source = source;
  bool const tiled = g.record == record_kind::page;
  h.layout = tiled ? kvt_layout::head_tiles : kvt_layout::row_records;
  h.group = s.codec.grouped_along == axis::row ? 0 : group_of(s);
  h.tile_tokens = tile_tokens_of(s);
  h.alignment = g.alignment;
  h.heads = g.heads;
  h.head_dim = s.head_dim;
  h.tokens = g.page_tokens;
  return h;
}

}  // namespace detail

/// First fault of a place in a tier: layers or heads that there are not, a first layer that keeps
/// nothing of this side.
constexpr problem check(page_format const& f, page_place const& at) noexcept {
  geometry const& g = f.shape;
  if (at.layers < 1 || at.first_layer < 0 || at.first_layer > g.layers - at.layers) {
    return {status::unsupported, "layers {} and the {} after it are not all in the tier",
            at.first_layer, std::int64_t{at.layers} - 1};
  }
  if (at.first_head < 0 || at.model_heads > kvt_max_heads ||
      at.first_head > std::int64_t{at.model_heads} - g.heads) {
    return {status::bad_heads, "KV heads from {} on are not all among the {} of the model",
            at.first_head, at.model_heads};
  }
  if (g.rows(at.which, at.first_layer).count == 0) {
    return {status::unsupported, "layer {} keeps nothing of side {} (0 is K)", at.first_layer,
            detail::number_of(at.which)};
  }
  return {};
}

/// Bytes of a page file, header included; depends on the tier and the place alone.
constexpr std::int64_t page_file_bytes(page_format const& f, page_place const& at) noexcept {
  return kvt_header_bytes + bytes_per_page(layers_of(f.shape, at.first_layer, at.layers), at.which);
}

/// The header of a page file, its CRC of the payload not set.
constexpr page_header plan_page_header(page_format const& f, page_place const& at) noexcept {
  geometry const& g = f.shape;
  page_header h;
  h.base = detail::base_of(g, g.rows(at.which, at.first_layer)[0], f.source);
  h.base.payload_bytes = page_file_bytes(f, at) - kvt_header_bytes;
  h.place = at;
  h.record = g.record;
  h.placement = g.placement;
  h.head_order = g.head_order;
  h.tier_layers = g.layers;
  h.configuration = f.configuration;
  return h;
}

namespace detail {

constexpr problem check_room(page_format const& f, page_place const& at,
                             std::int64_t bytes) noexcept {
  if (bytes == page_file_bytes(f, at)) return {};
  return {status::bad_page, "there is room for {} bytes, but the page file has {}", bytes,
          page_file_bytes(f, at)};
}

/// The place, the memory of its side, which must be whole pages, and the page in there.
constexpr problem check_page(page_format const& f, page_place const& at, std::int64_t memory_bytes,
                             std::int64_t page) noexcept {
  if (auto const p = check(f, at)) return p;
  std::int64_t const one = bytes_per_page(f.shape, at.which);
  if (memory_bytes % one != 0) {
    return {status::bad_page, "{} bytes are no whole number of pages of {}", memory_bytes, one};
  }
  if (page < 0 || page >= memory_bytes / one) {
    return {status::bad_page, "there is no page {} among {}", page, memory_bytes / one};
  }
  return {};
}

}  // namespace detail

/// Writes the header of a page file whose payload is in place already: `file` has
/// `page_file_bytes`, and what follows the header is the memory of a tier with one page and the
/// place's layers, all of it coded.
inline problem seal_page(page_format const& f, page_place const& at,
                         std::span<std::byte> file) noexcept {
  if (auto const p = check(f, at)) return p;
  if (auto const p = detail::check_room(f, at, std::ssize(file))) return p;
  page_header h = plan_page_header(f, at);
  h.base.payload_crc = crc32c(file.subspan(kvt_header_bytes));
  auto const header = serialize(h);
  std::memcpy(file.data(), header.data(), header.size());
  return {};
}

/// Writes page `page` of `memory`, all that a tier keeps of one side, into `file`, which has
/// `page_file_bytes`. The pages are coded already; nothing is written unless all fits.
inline problem write_page(page_format const& f, page_place const& at,
                          std::span<std::byte const> memory, std::int64_t page,
                          std::span<std::byte> file) noexcept {
  if (auto const p = detail::check_page(f, at, std::ssize(memory), page)) return p;
  if (auto const p = detail::check_room(f, at, std::ssize(file))) return p;
  std::byte* const payload = file.data() + kvt_header_bytes;
  std::int64_t const pages = std::ssize(memory) / bytes_per_page(f.shape, at.which);
  detail::for_each_run(
      f.shape, at, pages, page, [&](std::int64_t from, std::int64_t to, std::int64_t bytes) {
        std::memcpy(payload + to, memory.data() + from, static_cast<std::size_t>(bytes));
      });
  return seal_page(f, at, file);
}

/// What is wrong with a file as the page of this tier and place: its header, a number that is not
/// the tier's, its size, its payload's CRC.
inline problem check_page_file(page_format const& f, page_place const& at,
                               std::span<std::byte const> file) noexcept {
  if (auto const p = check(f, at)) return p;
  auto const [header, error] = parse_page_header(file);
  if (error) return error;
  if (auto const p = check_same(header, plan_page_header(f, at))) return p;
  if (std::ssize(file) != page_file_bytes(f, at)) {
    return kvarts::detail::kvt_problem("the file has {} bytes, but its header promises {}",
                                       std::ssize(file), page_file_bytes(f, at));
  }
  if (crc32c(file.subspan(kvt_header_bytes)) != header.base.payload_crc) {
    return kvarts::detail::kvt_problem("the payload is damaged: its CRC-32C does not match");
  }
  return {};
}

/// Puts a page file back as page `page` of `memory`, all that a tier keeps of one side. Whatever is
/// wrong with the file is found before the first byte is written, so a rejected restore leaves the
/// tier as it was. The file must not change meanwhile: read it, rather than map it, where others
/// may write.
inline problem restore_page(page_format const& f, page_place const& at,
                            std::span<std::byte const> file, std::span<std::byte> memory,
                            std::int64_t page) noexcept {
  if (auto const p = detail::check_page(f, at, std::ssize(memory), page)) return p;
  if (auto const p = check_page_file(f, at, file)) return p;
  auto const payload = file.subspan(kvt_header_bytes);
  std::int64_t const pages = std::ssize(memory) / bytes_per_page(f.shape, at.which);
  detail::for_each_run(
      f.shape, at, pages, page, [&](std::int64_t to, std::int64_t from, std::int64_t bytes) {
        std::memcpy(memory.data() + to, payload.data() + from, static_cast<std::size_t>(bytes));
      });
  return {};
}

}  // namespace kvarts::tier
