// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whether a page that was found is the one that is wanted, and if not, which number differs.
#pragma once

#include <kvarts/tier/page_header.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvarts::tier {

namespace detail {

/// A number of the page that was found and that of the one that is wanted.
struct found_and_wanted {
  char const* text;
  std::int64_t found, wanted;
};

inline problem first_difference(std::span<found_and_wanted const> all) noexcept {
  for (found_and_wanted const& p : all) {
    if (p.found != p.wanted) return kvarts::detail::kvt_problem(p.text, p.found, p.wanted);
  }
  return {};
}

template <class Enum>
constexpr std::int64_t number_of(Enum e) noexcept {
  return static_cast<std::int64_t>(e);
}

/// The first seven bytes of a digest as a number, for messages.
constexpr std::int64_t begin_of(sha256_digest const& d) noexcept {
  std::int64_t x = 0;
  for (std::size_t i = 0; i < 7; ++i) x = x * 256 + static_cast<std::int64_t>(d[i]);
  return x;
}

/// How rows became codes.
inline problem check_same_coding(kvt_header const& f, kvt_header const& w) noexcept {
  found_and_wanted const all[] = {
      {"the page has codes of {} bits, the tier of {}", f.code_bits, w.code_bits},
      {"the page has groups along axis {}, the tier along {}", number_of(f.group_axis),
       number_of(w.group_axis)},
      {"the page has groups of {}, the tier of {}", f.group, w.group},
      {"the page has scales of type {}, the tier of {}", number_of(f.scale_type),
       number_of(w.scale_type)},
      {"zero-points are {} in the page and {} in the tier", f.zero_points, w.zero_points},
      {"the page was made of rows of type {}, the tier is of {}", number_of(f.source),
       number_of(w.source)},
  };
  if (problem const p = first_difference(all)) return p;
  if (f.codec == w.codec) return {};
  return kvarts::detail::kvt_problem("the page has another codec of {} bits than the tier's of {}",
                                     f.code_bits, w.code_bits);
}

/// How codes lie in the payload.
inline problem check_same_shape(page_header const& f, page_header const& w) noexcept {
  found_and_wanted const all[] = {
      {"the page has {} heads, the tier has {}", f.base.heads, w.base.heads},
      {"the page has head_dim {}, the tier has {}", f.base.head_dim, w.base.head_dim},
      {"the page has {} tokens, the tier's pages have {}", f.base.tokens, w.base.tokens},
      {"the page has records aligned to {} bytes, the tier to {}", f.base.alignment,
       w.base.alignment},
      {"the page has records of kind {}, the tier of {}", number_of(f.record), number_of(w.record)},
      {"the page has records laid out by rule {}, the tier by {}", number_of(f.base.layout),
       number_of(w.base.layout)},
      {"the page has tiles of {} tokens, the tier of {}", f.base.tile_tokens, w.base.tile_tokens},
      {"the page has host layout {}, the tier has {}", number_of(f.placement),
       number_of(w.placement)},
      {"the page has heads in order {}, the tier in {}", number_of(f.head_order),
       number_of(w.head_order)},
  };
  return first_difference(all);
}

/// Which part of the model it is.
inline problem check_same_place(page_header const& f, page_header const& w) noexcept {
  found_and_wanted const all[] = {
      {"the page is of side {} (0 is K), not of {}", number_of(f.place.which),
       number_of(w.place.which)},
      {"the page is of a tier of {} layers, not of {}", f.tier_layers, w.tier_layers},
      {"the page begins at layer {}, not at {}", f.place.first_layer, w.place.first_layer},
      {"the page has {} layers, not {}", f.place.layers, w.place.layers},
      {"the page begins at KV head {}, not at {}", f.place.first_head, w.place.first_head},
      {"the page is of a model of {} KV heads, not of {}", f.place.model_heads,
       w.place.model_heads},
  };
  return first_difference(all);
}

}  // namespace detail

/// First difference of the page that was found from the one that is wanted, with both numbers. The
/// payload's CRC is not compared.
inline problem check_same(page_header const& found, page_header const& wanted) noexcept {
  if (auto const p = detail::check_same_coding(found.base, wanted.base)) return p;
  if (auto const p = detail::check_same_shape(found, wanted)) return p;
  if (auto const p = detail::check_same_place(found, wanted)) return p;
  if (found.base.payload_bytes != wanted.base.payload_bytes) {
    return kvarts::detail::kvt_problem("the page has a payload of {} bytes, the tier's pages of {}",
                                       found.base.payload_bytes, wanted.base.payload_bytes);
  }
  if (found.configuration != wanted.configuration) {
    return kvarts::detail::kvt_problem(
        "the page's configuration (transforms, model) has a digest that begins with {}, not with "
        "{}",
        detail::begin_of(found.configuration), detail::begin_of(wanted.configuration));
  }
  if (found.place.key != wanted.place.key) {
    return kvarts::detail::kvt_problem("the page's key begins with {}, not with {}",
                                       detail::begin_of(found.place.key),
                                       detail::begin_of(wanted.place.key));
  }
  return {};
}

}  // namespace kvarts::tier
