// SPDX-License-Identifier: Apache-2.0
/// @file
/// The header of a page file: that of a .kvt file, whose reserved bytes say which page of which
/// tier it is.
///
///     offset  bytes  header field
///          0    108  as in kvt.hpp; codec fields are those of the first layer's first segment,
///                    tokens those of the page; no transform: the configuration's digest has it
///        108      2  version of the page's fields and payload, 1
///        110      1  0 K, 1 V
///        111      1  records: 0 of one token, 1 of a page
///        112      1  host layout: 0 layer_first, 1 page_first, 2 page_first_direct, 3 page_head
///        113      1  heads of page records: 0 token_major, 1 head_major
///        114      2  zero
///        116      4  first layer
///        120      4  layers in the file
///        124      4  layers of the tier
///        128      4  first KV head, counted in the model
///        132      4  KV heads of the model
///        136     32  digest of the configuration: `namespace_digest`
///        168     32  key of the page: the caller's digest of its tokens and all before them
///        200     52  zero
///        252      4  CRC-32C of bytes 0 to 251
///
/// The payload is the memory of K or of V of a tier with one page and the file's layers.
#pragma once

#include <kvarts/tier/capacity.hpp>
#include <kvarts/tier/namespace_digest.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kvarts::tier {

static_assert(side::keys == side{0} && host_layout::page_head == host_layout{3} &&
                  record_kind::row == record_kind{0} && order::token_major == order{0},
              "these numbers are part of the page format");

/// Which part of a model a page file holds: one side of some layers, all local heads, one page.
struct page_place {
  side which = side::keys;
  std::int32_t first_layer = 0;
  std::int32_t layers = 0;
  std::int32_t first_head = 0;   ///< of this rank, counted in the model
  std::int32_t model_heads = 0;  ///< KV heads of the model, all ranks together
  sha256_digest key{};           ///< names the page's tokens and all before them

  constexpr bool operator==(page_place const&) const = default;
};

/// The fields of a page file's header as plain values.
struct page_header {
  kvt_header base{};
  page_place place{};
  record_kind record = record_kind::row;
  host_layout placement = host_layout::layer_first;
  order head_order = order::head_major;
  std::int32_t tier_layers = 0;
  sha256_digest configuration{};

  bool operator==(page_header const&) const = default;
};

namespace detail {

inline constexpr std::size_t page_fields_offset = kvarts::detail::kvt_reserved_offset;
inline constexpr std::size_t page_fields_end = 200;

/// Calls `visit(offset, field)` for every field of a page but the version.
template <class Header, class Visit>
constexpr void for_each_page_field(Header& header, Visit visit) {
  visit(110, header.place.which);
  visit(111, header.record);
  visit(112, header.placement);
  visit(113, header.head_order);
  visit(116, header.place.first_layer);
  visit(120, header.place.layers);
  visit(124, header.tier_layers);
  visit(128, header.place.first_head);
  visit(132, header.place.model_heads);
  visit(136, header.configuration);
  visit(168, header.place.key);
}

/// Numbers of a page that are wrong whatever the tier is.
constexpr problem check_page_fields(page_header const& h) noexcept {
  struct bounds {
    char const* text;
    std::int64_t value, least, most;
  };
  std::int64_t const heads = h.base.heads;
  std::int64_t const layers = h.tier_layers;
  bounds const all[] = {
      {"side of the page is {}, not 0 to {}", static_cast<int>(h.place.which), 0, 1},
      {"record kind is {}, not 0 to {}", static_cast<int>(h.record), 0, 1},
      {"host layout is {}, not 0 to {}", static_cast<int>(h.placement), 0, 3},
      {"order of heads is {}, not 0 to {}", static_cast<int>(h.head_order), 0, 1},
      {"layers of the tier are {}, not 1 to {}", layers, 1, geometry::max_layers},
      {"first layer is {}, not 0 to {}", h.place.first_layer, 0, layers - 1},
      {"layers of the page are {}, not 1 to {}", h.place.layers, 1, layers - h.place.first_layer},
      {"KV heads of the model are {}, not up to {}", h.place.model_heads, heads, kvt_max_heads},
      {"first KV head is {}, not 0 to {}", h.place.first_head, 0, h.place.model_heads - heads},
      {"parts of a transform in a page are {}, not {}", h.base.transform, 0, 0},
      {"CRC-32C of a page's transform is {}, not {}", h.base.transform_crc, 0, 0},
  };
  for (bounds const& b : all) {
    if (b.value < b.least || b.value > b.most) {
      return kvarts::detail::kvt_problem(b.text, b.value, b.most);
    }
  }
  return {};
}

}  // namespace detail

/// The header's 256 bytes; its CRCs of the payload must be set.
inline std::array<std::byte, kvt_header_bytes> serialize(page_header const& header) noexcept {
  auto bytes = kvarts::serialize(header.base);
  store_unaligned(&bytes[detail::page_fields_offset], page_version);
  detail::for_each_page_field(header, [&](std::size_t offset, auto const& field) {
    store_unaligned(&bytes[offset], field);
  });
  kvarts::detail::seal_kvt_header(bytes);
  return bytes;
}

/// A page's header that was read: valid when `error` is empty.
struct page_header_result {
  page_header header;
  problem error;
};

/// Reads and checks a page's header from the first 256 bytes of `file`; allocates nothing.
inline page_header_result parse_page_header(std::span<std::byte const> file) noexcept {
  if (auto const p = kvarts::detail::check_kvt_frame(file)) return {{}, p};
  auto const version = load_unaligned<std::uint16_t>(&file[detail::page_fields_offset]);
  if (version != page_version) {
    char const* const text =
        version == 0 ? "a .kvt file without the fields of a page (page version {}, not {})"
                     : "page version is {}, but only {} is known";
    return {{}, kvarts::detail::kvt_problem(text, version, page_version)};
  }
  auto p = kvarts::detail::check_kvt_zeros(file, detail::page_fields_end);
  if (!p && load_unaligned<std::uint16_t>(&file[114]) != 0) {
    p = kvarts::detail::kvt_problem("reserved bytes of the page are not zero");
  }
  page_header h;
  h.base = kvarts::detail::load_kvt_fields(file);
  detail::for_each_page_field(h, [&]<class Field>(std::size_t offset, Field& field) {
    field = load_unaligned<Field>(&file[offset]);
  });
  if (!p) p = check_kvt_header(h.base);
  if (!p) p = detail::check_page_fields(h);
  return {h, p};
}

}  // namespace kvarts::tier
