// SPDX-License-Identifier: Apache-2.0
/// @file
/// Exact sizes of a host tier, and how many tokens a budget of bytes holds. All take a geometry
/// that `check` accepts.
#pragma once

#include <kvarts/tier/geometry.hpp>

namespace kvarts::tier {

/// Bytes of one record of a layer of K or of V; with `page_head` of one head of it.
constexpr std::int64_t record_bytes(geometry const& g, side s, int layer) noexcept {
  return record_bytes(g.rows(s, layer), g.shape());
}

/// The same of the first `layers` layers together.
constexpr std::int64_t record_bytes_before(geometry const& g, side s, int layers) noexcept {
  std::int64_t sum = 0;
  for (int layer = 0; layer < layers; ++layer) sum += record_bytes(g, s, layer);
  return sum;
}

/// Bytes that a page takes in K or in V, all layers together.
constexpr std::int64_t bytes_per_page(geometry const& g, side s) noexcept {
  return g.records_per_page() * record_bytes_before(g, s, g.layers);
}

/// Bytes that a page takes, all layers of K and V together.
constexpr std::int64_t bytes_per_page(geometry const& g) noexcept {
  return bytes_per_page(g, side::keys) + bytes_per_page(g, side::values);
}

/// Bytes that a token takes, all layers of K and V together. Exact for row records; page records
/// have one padding for all tokens, whose share is rounded up.
constexpr std::int64_t bytes_per_token(geometry const& g) noexcept {
  return ceil_div(bytes_per_page(g), g.page_tokens);
}

/// How a budget becomes pages.
enum class capacity_rule : std::uint8_t {
  strict,  ///< the whole pages that fit: never more bytes than the budget
  sglang,  ///< SGLang's: n = floor(budget / bytes a token), n / P + 1 pages; up to a page more
};

struct capacity {
  std::int64_t pages = 0;
  std::int64_t tokens = 0;
  std::int64_t bytes = 0;

  constexpr bool operator==(capacity const&) const = default;
};

namespace detail {

/// Largest budget, and the most bytes of a tier.
inline constexpr std::int64_t max_bytes = std::int64_t{1} << 60;

}  // namespace detail

/// Pages, tokens and bytes that a budget of bytes gives; none for a budget below zero. n / P is the
/// number of whole pages in the budget, so the rules differ by one page.
constexpr capacity capacity_for(geometry const& g, std::int64_t budget,
                                capacity_rule rule = capacity_rule::strict) noexcept {
  if (budget < 0) return {};
  std::int64_t const page = bytes_per_page(g);
  std::int64_t const pages = budget / page + (rule == capacity_rule::sglang ? 1 : 0);
  return {pages, pages * g.page_tokens, pages * page};
}

/// A budget must hold at least one page.
constexpr problem check_budget(geometry const& g, std::int64_t budget) noexcept {
  if (budget > detail::max_bytes) {
    return {status::bad_tokens, "a budget of {} bytes is more than {}", budget, detail::max_bytes};
  }
  if (budget < bytes_per_page(g)) {
    return {status::no_pages, "a budget of {} bytes does not hold one page of {} bytes", budget,
            bytes_per_page(g)};
  }
  return {};
}

}  // namespace kvarts::tier
