// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which bytes of a tier lie together, so that pages move in few and long copies.
#pragma once

#include <kvarts/tier/index_pairs.hpp>
#include <kvarts/tier/placement.hpp>

#include <cstdint>

namespace kvarts::tier {

/// What is staged together: one layer of K or of V, or with `whole_pages` all layers, whose pages
/// lie together in all host layouts but layer_first.
struct staged_span {
  tier::side side = side::keys;
  int layer = 0;
  bool whole_pages = false;
};

/// A geometry whose pages are units of `unit` tokens of this one: the same bytes, other indices.
/// Pages of rows that follow one another are cut anywhere; other units are whole pages.
constexpr problem divide_pages(geometry const& g, std::int64_t unit, geometry& divided) noexcept {
  divided = g;
  if (unit == g.page_tokens) return {};
  bool const flat =
      g.placement == host_layout::layer_first || g.placement == host_layout::page_first;
  if (unit < 1 || g.page_tokens % unit != 0 || !flat || g.record != record_kind::row) {
    return {status::unsupported,
            "pages of {} tokens do not move in units of {}: they are whole pages, or rows of "
            "layer_first and page_first",
            g.page_tokens, unit};
  }
  divided.page_tokens = static_cast<std::int32_t>(unit);
  return {};
}

namespace detail {

/// The geometry of one layer alone.
constexpr geometry one_layer(geometry const& g, int layer) noexcept {
  geometry one = g;
  one.layers = 1;
  one.kinds[0] = g.kind(layer);
  one.kind_of_layer[0] = 0;
  return one;
}

}  // namespace detail

/// Bytes of a page of a span.
constexpr std::int64_t bytes_per_page(geometry const& g, staged_span const& span) noexcept {
  if (span.whole_pages) return bytes_per_page(g, span.side);
  return g.records_per_page() * record_bytes(g, span.side, span.layer);
}

/// Layout of a segment of a layer in staging of `pages` pages: what the span holds, without what
/// lies between on the host.
constexpr layout plan_staging(geometry const& g, staged_span const& span, int layer,
                              std::int64_t pages, int part) noexcept {
  if (span.whole_pages) return plan_layout(g, span.side, layer, pages, part);
  return plan_layout(detail::one_layer(g, layer), span.side, 0, pages, part);
}

/// Bytes that lie together both in the host's memory and in staging, from these offsets on.
struct piece {
  std::int64_t host = 0;
  std::int64_t staged = 0;
  std::int64_t bytes = 0;
};

namespace detail {

/// Joins pieces that continue one another, and hands on the others: `f(piece)`.
template <class F>
class piece_joiner {
 public:
  explicit constexpr piece_joiner(F const& f) noexcept : f_(f) {}

  constexpr void add(piece const& p) {
    if (p.host == last_.host + last_.bytes && p.staged == last_.staged + last_.bytes) {
      last_.bytes += p.bytes;
      return;
    }
    finish();
    last_ = p;
  }
  constexpr void finish() {
    if (last_.bytes > 0) f_(last_);
    last_ = {};
  }

 private:
  F const& f_;
  piece last_{};
};

/// The records of page `host` of one layer, and of page `staged` in staging of `staged_pages`.
template <class Joiner>
constexpr void add_records(geometry const& g, staged_span const& span, std::int64_t tier_pages,
                           std::int64_t staged_pages, std::int64_t host, std::int64_t staged,
                           Joiner& join) {
  record_strides const there = strides_of(g, span.side, span.layer, tier_pages);
  record_strides const here = strides_of(one_layer(g, span.layer), span.side, 0, staged_pages);
  std::int64_t const bytes = record_bytes(g, span.side, span.layer);
  int const heads = g.heads / g.shape().heads;
  int const records = g.page_tokens / g.shape().tokens;
  for (int h = 0; h < heads; ++h) {
    for (int r = 0; r < records; ++r) {
      join.add({there.base + host * there.page + h * there.head + r * there.record,
                here.base + staged * here.page + h * here.head + r * here.record, bytes});
    }
  }
}

}  // namespace detail

/// Whether a page of a span is one run of the host's bytes.
constexpr bool lies_together(geometry const& g, staged_span const& span) noexcept {
  return span.whole_pages || g.placement == host_layout::layer_first ||
         g.placement == host_layout::page_first_direct;
}

/// Calls `f(piece)` for the bytes of pages `page(0)..page(count - 1)` of a span, in this order, as
/// they lie in staging: neighbours on the host are one piece.
template <class Page, class F>
constexpr void for_each_piece(geometry const& g, staged_span const& span, std::int64_t tier_pages,
                              std::int64_t count, Page const& page, F const& f) {
  record_strides const at = strides_of(g, span.side, span.layer, tier_pages);
  std::int64_t const bytes = bytes_per_page(g, span);
  detail::piece_joiner<F> join(f);
  for (std::int64_t i = 0; i < count; ++i) {
    if (lies_together(g, span)) {
      join.add({at.base + page(i) * at.page, i * bytes, bytes});
    } else {
      detail::add_records(g, span, tier_pages, count, page(i), i, join);
    }
  }
  join.finish();
}

/// Bytes of the mean piece of so many pages, or of a record where pages are many pieces.
template <class Page>
constexpr std::int64_t mean_piece_bytes(geometry const& g, staged_span const& span,
                                        std::int64_t count, Page const& page) {
  if (!lies_together(g, span)) return record_bytes(g, span.side, span.layer);
  std::int64_t const bytes = bytes_per_page(g, span);
  bool const join = span.whole_pages || g.placement == host_layout::layer_first;
  std::int64_t runs = 1;
  for (std::int64_t i = 1; i < count; ++i) runs += join && page(i) == page(i - 1) + 1 ? 0 : 1;
  return count * bytes / runs;
}

}  // namespace kvarts::tier
