// SPDX-License-Identifier: Apache-2.0
/// @file
/// Definitions of the launches in `kvarts/cuda/encode.hpp`.
#pragma once

#include <kvarts/cuda/encode.hpp>
#include <kvarts/kernels/encode_unit.cuh>
#include <kvarts/kernels/explain_rows.cuh>
#include <kvarts/kernels/launch.cuh>
#include <kvarts/kernels/sequence_rows.cuh>
#include <kvarts/kernels/slot_rows.cuh>

#include <algorithm>
#include <cstdint>

namespace kvarts::kernels {

/// Fills in the rows of a unit and where it lies; false when there is nothing to encode. Its rows
/// must be in the plain tensor too.
template <class View, int GroupSlots>
KVARTS_DEVICE bool prepare(encode_arguments<View> const& a, cuda::rows const& which,
                           span_unit const& u, unit_encoder<View, GroupSlots>& encoder,
                           encode_place& place) {
  layout const& m = a.dst.map;
  if (place.head == 0) encoder.refuse(u.outside);
  auto const count = static_cast<int>(u.tokens.size());
  if (count <= 0) return false;
  token_range const all = u.span.tokens;
  std::int64_t const first_row = u.span.first_row + u.tokens.begin - all.begin;
  bool served = locate_unit(m, which, a.dst.data, u, place) && first_row >= 0 &&
                first_row + count <= a.src.map.tokens;
  if constexpr (View::codec::grouped_along == axis::token) {
    served = served && all.begin % m.group == 0;
  }
  if (!served) {
    if (place.head == 0) encoder.refuse(count);
    return false;
  }
  auto const before = static_cast<int>(u.tokens.begin - u.first);
  for (int i = lane_index(); i < a.memory.unit; i += warp_lanes) {
    bool const has = i >= before && i < before + count;
    encoder.rows()[i] = has ? static_cast<std::int32_t>(first_row + i - before) : -1;
  }
  std::int64_t const first_of_tile = u.first - place.at.slot;
  std::int64_t const first_of_page = m.page_tokens > 0 ? u.first - u.first % m.page_tokens : 0;
  place.first_of_tile = u.tokens.begin == std::max(all.begin, first_of_tile);
  place.first_of_page = u.tokens.begin == std::max(all.begin, first_of_page);
  return true;
}

/// The same for the unit whose first row in an append is `row`.
template <class View, int GroupSlots>
KVARTS_DEVICE bool prepare(encode_arguments<View> const& a, slot_rows const& slots,
                           std::int64_t row, unit_encoder<View, GroupSlots>& encoder,
                           encode_place& place) {
  layout const& m = a.dst.map;
  if (slots.is_outside(row) && place.head == 0) encoder.refuse(1);
  std::int64_t const unit = slots.unit_of(row);
  if (unit < 0 || !slots.is_first(row)) return false;
  slots.gather(row, encoder.rows());
  std::int64_t token = unit * a.memory.unit;
  place.data = a.dst.data;
  place.at = {};
  if (m.page_tokens > 0) {
    place.at.page = token / m.page_tokens;
    token %= m.page_tokens;
  }
  place.at.tile = token / m.tile_tokens;
  place.at.slot = static_cast<int>(token % m.tile_tokens);
  place.first_of_tile = place.at.slot == 0;
  place.first_of_page = token == 0;
  return true;
}

/// Each unit of the destination is read, changed and written by one warp. Items of `which` are
/// units of the sequences' positions, so no two warps have the same unit of the same head; with a
/// slot mapping items are rows, and the warp with the first row of a unit takes all of them.
template <class View, int GroupSlots>
KVARTS_KERNEL(unit_threads, 2)
encode_kernel(encode_arguments<View> a, cuda::rows which, std::int64_t const* slot_mapping,
              std::int64_t items) {
  row_division const division(which, a.memory.unit);
  slot_rows const slots(slot_mapping, a.src.map.tokens, a.dst.map.tokens, a.memory.unit);
  unit_encoder<View, GroupSlots> encoder(a);
  int const heads = a.dst.map.heads;
  int const warps = block_threads() / warp_lanes;
  std::int64_t const step = std::int64_t{grid_blocks()} * warps;
  for (std::int64_t i = std::int64_t{block_index()} * warps + warp_index(); i < items; i += step) {
    encode_place place;
    place.head = static_cast<int>(i % heads);
    bool const has_work = slot_mapping != nullptr
                              ? prepare(a, slots, i / heads, encoder, place)
                              : prepare(a, which, division.find(i / heads), encoder, place);
    if (has_work) encoder(place);
  }
  encoder.report();
}

/// Calls `f` with the registers a lane needs for a group, as a constant.
template <class Codec, class F>
cudaError_t with_group_slots(layout const& m, F f) {
  if constexpr (!Codec::plain && Codec::grouped_along != axis::row) {
    int const longest =
        Codec::grouped_along == axis::channel ? std::min(m.group, m.head_dim) : m.group;
    if (longest <= warp_lanes) return f(std::integral_constant<int, 1>{});
  }
  return f(std::integral_constant<int, row_slots>{});
}

/// Launches for `items` units or rows.
template <class Codec, class Packing>
cudaError_t launch_encode(view<Codec, std::byte, Packing> const& dst, source_view const& src,
                          cuda::rows const& which, std::int64_t const* slot_mapping,
                          transform_view const& transform, cuda::encode_counts* counts,
                          std::int64_t items, cudaStream_t stream) noexcept {
  using coded = view<Codec, std::byte, Packing>;
  encode_arguments<coded> const a{dst, src, transform, counts,
                                  plan_warp_memory<Codec, Packing>(dst.map, true)};
  std::int64_t const all = items * dst.map.heads;
  return with_group_slots<Codec>(dst.map, [&](auto slots) {
    return launch(encode_kernel<coded, slots>, shape_for_warps(all, a.memory), stream, a, which,
                  slot_mapping, all);
  });
}

/// The faults of an encode or an append but for its rows.
template <class Codec, class Packing>
problem explain_encoder(view<Codec, std::byte, Packing> const& dst, source_view const& src,
                        transform_view const& transform) noexcept {
  if (auto const p = explain_coded<Codec, Packing>(dst.map, dst.data)) return p;
  if (auto const p = explain_plain(src.map, src.type, src.data, dst.map)) return p;
  if (auto const p = explain_transform(transform)) return p;
  return explain_memory(dst.map, plan_warp_memory<Codec, Packing>(dst.map, true));
}

}  // namespace kvarts::kernels

namespace kvarts::cuda {

template <codec_type Codec, packing Packing>
problem explain_encode(view<Codec, std::byte, Packing> const& dst, source_view const& src,
                       rows const& which, transform_view const& transform) noexcept {
  if (auto const p = kernels::explain_encoder(dst, src, transform)) return p;
  return kernels::explain_rows(dst.map, which);
}

template <codec_type Codec, packing Packing>
cudaError_t encode(view<Codec, std::byte, Packing> dst, source_view src, rows const& which,
                   transform_view const& transform, encode_counts* counts,
                   cudaStream_t stream) noexcept {
  if (auto const p = explain_encode(dst, src, which, transform)) return kernels::error_of(p);
  int const unit = kernels::unit_tokens<Codec, Packing>(dst.map);
  return kernels::launch_encode(dst, src, which, nullptr, transform, counts,
                                kernels::row_division(which, unit).items(src.map.tokens), stream);
}

template <codec_type Codec, packing Packing>
problem explain_append(view<Codec, std::byte, Packing> const& dst, source_view const& src,
                       transform_view const& transform) noexcept {
  return kernels::explain_encoder(dst, src, transform);
}

template <codec_type Codec, packing Packing>
cudaError_t append(view<Codec, std::byte, Packing> dst, source_view src,
                   std::int64_t const* slot_mapping, transform_view const& transform,
                   encode_counts* counts, cudaStream_t stream) noexcept {
  if (auto const p = explain_append(dst, src, transform)) return kernels::error_of(p);
  if (slot_mapping == nullptr) return cudaErrorInvalidValue;
  return kernels::launch_encode(dst, src, rows{}, slot_mapping, transform, counts, src.map.tokens,
                                stream);
}

}  // namespace kvarts::cuda
