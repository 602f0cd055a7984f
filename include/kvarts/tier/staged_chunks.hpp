// SPDX-License-Identifier: Apache-2.0
/// @file
/// How a move is cut into chunks that fit into slices of staging, and what launches of a chunk look
/// like.
#pragma once

#include <kvarts/tier/device.hpp>
#include <kvarts/tier/layers.hpp>
#include <kvarts/tier/pieces.hpp>
#include <kvarts/tier/staging_ring.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

namespace kvarts::tier::detail {

/// Layout of a tensor in pages of `unit` tokens, for kernels that find rows by lists of pages.
constexpr problem divide_tensor(layout const& m, std::int64_t unit, layout& divided) noexcept {
  divided = m;
  if (m.page_tokens == unit) return {};
  if (m.page_tokens != 0 && m.codes.page_stride != m.page_tokens * m.codes.tile_stride) {
    return {status::unsupported,
            "a tensor with pages of {} tokens, which do not follow one another as tokens do, moves "
            "in whole pages, not in units of {}",
            m.page_tokens, unit};
  }
  divided.page_tokens = static_cast<std::int32_t>(unit);
  divided.tokens = m.tokens / unit * unit;
  divided.codes.page_stride = unit * m.codes.tile_stride;
  return {};
}

/// A slice in use: lists of pages, then records.
struct slice_parts {
  std::byte* lists = nullptr;    ///< `[2, room]` int32: pages of the tensor, pages of the tier
  std::byte* records = nullptr;  ///< of as many pages
  std::int64_t room = 0;

  /// Bytes that the lists of `pages` pages take.
  static constexpr std::int64_t list_bytes(std::int64_t pages) noexcept {
    return round_up(2 * std::int64_t{sizeof(std::int32_t)} * pages, 256);
  }
  /// How many pages of so many bytes fit.
  static constexpr std::int64_t room_of(std::int64_t slice_bytes,
                                        std::int64_t page_bytes) noexcept {
    std::int64_t const one = page_bytes + 2 * std::int64_t{sizeof(std::int32_t)};
    return std::max<std::int64_t>(slice_bytes - 256, 0) / one;
  }

  constexpr slice_parts(std::byte* data, std::int64_t pages) noexcept
      : lists(data), records(data + list_bytes(pages)), room(pages) {}

  std::int32_t const* list(int which) const noexcept {
    return reinterpret_cast<std::int32_t const*>(lists) + which * room;
  }
};

/// Takes `index(i)` for i < count to a list in device memory; nothing of the host is read later.
template <device D, class Index>
void upload_list(enqueuer<D>& q, typename D::stream stream, std::int32_t const* list,
                 std::int64_t count, Index const& index) {
  std::array<std::int32_t, 512> some;
  auto* const to = reinterpret_cast<std::byte*>(const_cast<std::int32_t*>(list));
  constexpr std::int64_t size = sizeof(std::int32_t);
  for (std::int64_t i = 0; i < count;) {
    auto const n = std::min<std::int64_t>(count - i, std::int64_t{some.size()});
    for (std::int64_t k = 0; k < n; ++k) {
      some[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(index(i + k));
    }
    q([&](D& d) {
      return d.upload(to + i * size, reinterpret_cast<std::byte const*>(some.data()), n * size,
                      stream);
    });
    i += n;
  }
}

/// A move of pages of a tier and of tensors, made ready: indices are of pages of `g`.
template <class Byte, class Plain>
struct page_job {
  geometry g{};  ///< in units of the move
  basic_tier_view<Byte> tier{};
  std::span<plain_layer<Plain> const> plain{};
  layer_range layers{};

  std::int64_t pages() const noexcept {
    return tier.pages * (tier.geometry->page_tokens / g.page_tokens);
  }
  plain_segment<Plain> const& tensor(side s, int layer, int part) const noexcept {
    return plain[static_cast<std::size_t>(layer - layers.begin)].at(s, part);
  }

  /// The launch of a segment, without its memory and pages.
  page_launch<Byte, Plain> launch(side s, int layer, int part, layout const& map) const noexcept {
    auto const& from = tensor(s, layer, part);
    page_launch<Byte, Plain> l;
    l.codec = g.rows(s, layer)[part].codec;
    l.map = map;
    l.plain = from.rows;
    static_cast<void>(divide_tensor(from.rows.map, g.page_tokens, l.plain.map));
    l.transform = from.transform;
    return l;
  }
};

/// Makes a move ready and checks all that can be known before it runs; on a problem nothing was
/// enqueued. The numbers of centers and norms, in device memory, are not checked.
template <device D, class Byte, class Plain>
problem prepare(D& d, page_job<Byte, Plain>& job, page_moves const& moves) {
  geometry const& g = *job.tier.geometry;
  if (auto const p = divide_pages(g, moves.unit_tokens, job.g)) return p;
  return for_each_segment(g, job.layers, [&](side s, int layer, int part) -> problem {
    layout tensor;
    auto const& rows = job.tensor(s, layer, part).rows;
    if (auto const p = divide_tensor(rows.map, moves.unit_tokens, tensor)) return p;
    auto l = job.launch(s, layer, part, plan_layout(job.g, s, layer, job.pages(), part));
    l.coded = job.tier.memory(s);
    return d.explain(l);
  });
}

}  // namespace kvarts::tier::detail
