// SPDX-License-Identifier: Apache-2.0
/// @file
/// Definitions of the launches in `kvarts/cuda/decode.hpp`.
#pragma once

#include <kvarts/cuda/decode.hpp>
#include <kvarts/kernels/explain_rows.cuh>
#include <kvarts/kernels/launch.cuh>
#include <kvarts/kernels/sequence_rows.cuh>
#include <kvarts/kernels/warp_row.cuh>

#include <cstdint>

namespace kvarts::kernels {

/// What a decode reads and writes.
template <class View>
struct decode_arguments {
  View src{};
  target_view dst{};
  transform_view transform{};
  warp_memory memory{};
};

/// Reads the parameters of group `index` of a tile.
template <class Codec>
KVARTS_DEVICE typename Codec::parameters_type load_parameters(layout const& m,
                                                              unit_place<std::byte const> const& u,
                                                              std::int64_t index) {
  typename Codec::parameters_type p;
  p.scale = load_bytes<typename Codec::scale_type>(u.part(m.scales) + index * Codec::scale_bytes);
  if constexpr (Codec::zero_bytes != 0) {
    p.zero = load_bytes<half>(u.part(m.zeros) + index * Codec::zero_bytes);
  }
  return p;
}

/// Group of a token of a tile that has a channel, and how many numbers it has.
struct group_place {
  std::int64_t index = 0;
  int size = 0;
};

template <class Codec>
KVARTS_DEVICE group_place group_of(layout const& m, int token, int channel) {
  if constexpr (Codec::grouped_along == axis::row) {
    return {token, m.head_dim};
  } else if constexpr (Codec::grouped_along == axis::channel) {
    int const first = channel - channel % m.group;
    return {token * ceil_div(m.head_dim, m.group) + channel / m.group,
            std::min(m.group, m.head_dim - first)};
  } else {
    return {std::int64_t{token / m.group} * m.head_dim + channel, 1};
  }
}

/// Number `channel` of a token of a tile, in coded space; `code` as it is stored.
template <class Codec, class Packing>
KVARTS_DEVICE float decode_number(layout const& m, unit_place<std::byte const> const& u, int token,
                                  int channel, std::uint8_t code) {
  using quantizer = typename Codec::quantizer_type;
  auto const group = group_of<Codec>(m, token, channel);
  auto const p = load_parameters<Codec>(m, u, group.index);
  decoding const with = quantizer::decode_with(p);
  auto const stored = static_cast<std::uint8_t>(code ^ detail::stored_mask<quantizer, Packing>);
  return detail::add(detail::multiply(with.scale, quantizer::level(stored, p, group.size)),
                     with.zero);
}

/// One token of a unit, in coded space.
template <class Codec, class Packing>
KVARTS_DEVICE void decode_row(layout const& m, unit_place<std::byte const> const& u, int token,
                              std::uint8_t const* codes, float (&x)[row_slots]) {
  KVARTS_UNROLL
  for (int s = 0; s < row_slots; ++s) {
    int const d = s * warp_lanes + lane_index();
    x[s] = 0.0f;
    if (d >= m.head_dim) continue;
    if constexpr (Codec::plain) {
      std::byte const* const row = u.part(m.codes) + std::int64_t{token} * m.head_dim * 2;
      x[s] = load_number(
          std::is_same_v<typename Codec::value_type, half> ? dtype::f16 : dtype::bf16, row, d);
    } else {
      x[s] = decode_number<Codec, Packing>(m, u, token, d, codes[d]);
    }
  }
}

/// A warp decodes the tokens of a unit that are asked for.
template <class View>
KVARTS_KERNEL(unit_threads, 2)
decode_kernel(decode_arguments<View> a, cuda::rows which, std::int64_t items) {
  using codec = typename View::codec;
  using packing = typename View::packing;
  row_division const division(which, a.memory.unit);
  warp_transform const transform(a.transform, a.src.map.head_dim);
  std::byte* const memory = memory_of_warp(a.memory);
  auto* const codes = reinterpret_cast<std::uint8_t*>(memory + a.memory.codes);
  int const heads = a.src.map.heads;
  int const warps = block_threads() / warp_lanes;
  std::int64_t const step = std::int64_t{grid_blocks()} * warps;
  for (std::int64_t i = std::int64_t{block_index()} * warps + warp_index(); i < items; i += step) {
    span_unit const u = division.find(i / heads);
    unit_place<std::byte const> place;
    place.head = static_cast<int>(i % heads);
    if (u.tokens.size() <= 0 || !locate_unit(a.src.map, which, a.src.data, u, place)) continue;
    if constexpr (!codec::plain) {
      load_unit<codec, packing>(a.src.map, place, a.memory.unit, memory + a.memory.image, codes);
    }
    for (std::int64_t token = u.tokens.begin; token < u.tokens.end; ++token) {
      std::int64_t const row = u.span.first_row + token - u.span.tokens.begin;
      if (row < 0 || row >= a.dst.map.tokens) continue;
      auto const in_unit = static_cast<int>(token - u.first);
      float x[row_slots];
      decode_row<codec, packing>(a.src.map, place, place.at.slot + in_unit,
                                 codes + in_unit * a.src.map.head_dim, x);
      transform.to_model(place.head, x);
      std::byte* const to = a.dst.row(place.head, row);
      transform.for_each_number([&](int d, int s) { store_number(a.dst.type, to, d, x[s]); });
    }
    warp_barrier();
  }
}

}  // namespace kvarts::kernels

namespace kvarts::cuda {

template <codec_type Codec, packing Packing>
problem explain_decode(view<Codec, std::byte const, Packing> const& src, target_view const& dst,
                       rows const& which, transform_view const& transform) noexcept {
  using namespace kernels;
  if (auto const p = explain_coded<Codec, Packing>(src.map, src.data)) return p;
  if (auto const p = explain_plain(dst.map, dst.type, dst.data, src.map)) return p;
  if (auto const p = explain_transform(transform)) return p;
  if (auto const p = explain_memory(src.map, plan_warp_memory<Codec, Packing>(src.map, false))) {
    return p;
  }
  return explain_rows(src.map, which);
}

template <codec_type Codec, packing Packing>
cudaError_t decode(view<Codec, std::byte const, Packing> src, target_view dst, rows const& which,
                   transform_view const& transform, cudaStream_t stream) noexcept {
  using namespace kernels;
  if (auto const p = explain_decode(src, dst, which, transform)) return error_of(p);
  using coded = view<Codec, std::byte const, Packing>;
  decode_arguments<coded> const a{src, dst, transform,
                                  plan_warp_memory<Codec, Packing>(src.map, false)};
  std::int64_t const items =
      row_division(which, a.memory.unit).items(dst.map.tokens) * src.map.heads;
  return launch(decode_kernel<coded>, shape_for_warps(items, a.memory), stream, a, which, items);
}

}  // namespace kvarts::cuda
