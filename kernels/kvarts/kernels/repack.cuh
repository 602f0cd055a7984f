// SPDX-License-Identifier: Apache-2.0
/// @file
/// Definitions of the launches in `kvarts/cuda/repack.hpp`.
#pragma once

#include <kvarts/cuda/repack.hpp>
#include <kvarts/kernels/explain_rows.cuh>
#include <kvarts/kernels/launch.cuh>
#include <kvarts/kernels/sequence_rows.cuh>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace kvarts::kernels {

/// What a repack reads and writes. A warp moves `unit` tokens: whole units of both packings. Its
/// shared memory holds the codes of `unit` tokens, those of a unit of the destination, and a packed
/// unit of either.
template <class From, class To>
struct repack_arguments {
  From src{};
  To dst{};
  cuda::batch from{};
  cuda::batch to{};
  int unit = 1;
  int src_unit = 1;
  int dst_unit = 1;
  int dst_codes = 0;
  int image = 0;
  warp_memory memory{};
};

/// One warp's repacker: the tokens of `u` of one head.
template <class From, class To>
class unit_repacker {
  using codec = typename From::codec;

 public:
  KVARTS_DEVICE unit_repacker(repack_arguments<From, To> const& a, span_unit const& u, int head)
      : a_(a), u_(u), memory_(memory_of_warp(a.memory)) {
    source_.head = head;
    target_.head = head;
  }

  KVARTS_DEVICE void operator()() {
    if constexpr (codec::plain) {
      if (!find(u_.first)) return;
      int const bytes = 2 * a_.src.map.head_dim;
      warp_copy(target_.part(a_.dst.map.codes) + std::int64_t{target_.at.slot} * bytes,
                source_.part(a_.src.map.codes) + std::int64_t{source_.at.slot} * bytes, bytes);
    } else {
      load();
      for (int first = 0; first < a_.unit; first += a_.dst_unit) move_codes(first);
      constexpr bool along_tokens = codec::grouped_along == axis::token;
      int const step = along_tokens ? a_.src.map.group : 1;
      for (int i = 0; i < a_.unit; i += step) {
        if (asks_for(i, step) && find(u_.first + i)) move_parameters();
      }
    }
  }

 private:
  KVARTS_DEVICE std::uint8_t* codes() const { return reinterpret_cast<std::uint8_t*>(memory_); }
  KVARTS_DEVICE std::uint8_t* dst_codes() const {
    return reinterpret_cast<std::uint8_t*>(memory_ + a_.dst_codes);
  }
  KVARTS_DEVICE std::byte* image() const { return memory_ + a_.image; }

  /// True when any of `count` tokens from number i of the unit on is asked for.
  KVARTS_DEVICE bool asks_for(int i, int count) const {
    return u_.first + i < u_.tokens.end && u_.first + i + count > u_.tokens.begin;
  }
  KVARTS_DEVICE bool find_source(std::int64_t token) {
    return locate_token(a_.src.map, a_.from, a_.src.data, u_.span.sequence, token, source_);
  }
  KVARTS_DEVICE bool find_target(std::int64_t token) {
    return locate_token(a_.dst.map, a_.to, a_.dst.data, u_.span.sequence, token, target_);
  }
  /// Where a token lies on both sides.
  KVARTS_DEVICE bool find(std::int64_t token) { return find_source(token) && find_target(token); }

  KVARTS_DEVICE void load() {
    for (int first = 0; first < a_.unit; first += a_.src_unit) {
      if (!asks_for(first, a_.src_unit) || !find_source(u_.first + first)) continue;
      load_unit<codec, typename From::packing>(a_.src.map, source_, a_.src_unit, image(),
                                               codes() + first * a_.src.map.head_dim);
    }
  }

  /// A unit of the destination; tokens that are not asked for keep their codes.
  KVARTS_DEVICE void move_codes(int first) {
    using quantizer = typename codec::quantizer_type;
    constexpr std::uint8_t mask = detail::stored_mask<quantizer, typename From::packing> ^
                                  detail::stored_mask<quantizer, typename To::packing>;
    if (!asks_for(first, a_.dst_unit) || !find_target(u_.first + first)) return;
    int const head_dim = a_.dst.map.head_dim;
    bool const whole =
        u_.first + first >= u_.tokens.begin && u_.first + first + a_.dst_unit <= u_.tokens.end;
    if (!whole) {
      load_unit<codec, typename To::packing>(a_.dst.map, target_, a_.dst_unit, image(),
                                             dst_codes());
    }
    for (int i = 0; i < a_.dst_unit; ++i) {
      if (!asks_for(first + i, 1)) continue;
      for (int d = lane_index(); d < head_dim; d += warp_lanes) {
        std::uint8_t const code = codes()[(first + i) * head_dim + d];
        dst_codes()[i * head_dim + d] = static_cast<std::uint8_t>(code ^ mask);
      }
    }
    store_unit<codec, typename To::packing>(a_.dst.map, target_, a_.dst_unit, dst_codes(), image());
  }

  /// The parameters of the token (or group of tokens) that was found.
  KVARTS_DEVICE void move_parameters() const {
    std::int64_t const count = parameters_of(a_.src.map);
    move_plane(a_.src.map.scales, a_.dst.map.scales, count * codec::scale_bytes);
    if constexpr (codec::zero_bytes != 0) {
      move_plane(a_.src.map.zeros, a_.dst.map.zeros, count * codec::zero_bytes);
    }
  }

  KVARTS_DEVICE void move_plane(plane const& from, plane const& to, std::int64_t bytes) const {
    warp_copy(target_.part(to) + index_of(a_.dst.map, target_) * bytes,
              source_.part(from) + index_of(a_.src.map, source_) * bytes, static_cast<int>(bytes));
  }

  /// Parameters of a token (or group of tokens), and which of the tile's it is.
  KVARTS_DEVICE static std::int64_t parameters_of(layout const& m) {
    if constexpr (codec::grouped_along == axis::row) return 1;
    if constexpr (codec::grouped_along == axis::channel) return ceil_div(m.head_dim, m.group);
    return m.head_dim;
  }
  template <class Place>
  KVARTS_DEVICE static std::int64_t index_of(layout const& m, Place const& p) {
    return codec::grouped_along == axis::token ? p.at.slot / m.group : p.at.slot;
  }

  repack_arguments<From, To> const& a_;
  span_unit const& u_;
  std::byte* memory_;
  unit_place<std::byte const> source_{};
  unit_place<std::byte> target_{};
};

/// A warp owns the tokens of whole units of both packings.
template <class From, class To>
KVARTS_KERNEL(unit_threads, 2)
repack_kernel(repack_arguments<From, To> a, cuda::rows which, std::int64_t items) {
  row_division const division(which, a.unit);
  int const heads = a.src.map.heads;
  int const warps = block_threads() / warp_lanes;
  std::int64_t const step = std::int64_t{grid_blocks()} * warps;
  for (std::int64_t i = std::int64_t{block_index()} * warps + warp_index(); i < items; i += step) {
    span_unit const u = division.find(i / heads);
    if (u.tokens.size() <= 0) continue;
    unit_repacker<From, To>(a, u, static_cast<int>(i % heads))();
    warp_barrier();
  }
}

/// Fills in the units and the shared memory of a repack.
template <class From, class To>
void plan_repack(repack_arguments<From, To>& a) noexcept {
  using codec = typename From::codec;
  using from = typename From::packing;
  using to = typename To::packing;
  a.src_unit = unit_tokens<codec, from>(a.src.map);
  a.dst_unit = unit_tokens<codec, to>(a.dst.map);
  a.unit = std::lcm(a.src_unit, a.dst_unit);
  a.memory.unit = a.unit;
  if constexpr (!codec::plain) {
    std::int64_t const channels = a.src.map.head_dim;
    std::int64_t const codes = round_up(a.unit * channels, 16);
    std::int64_t const image = codes + round_up(a.dst_unit * channels, 16);
    std::int64_t const bytes = image + std::max(code_units<from>::bytes(a.src.shape(), a.src_unit),
                                                code_units<to>::bytes(a.dst.shape(), a.dst_unit));
    constexpr std::int64_t most = 2 * default_shared_bytes;
    a.dst_codes = static_cast<int>(std::min(codes, most));
    a.image = static_cast<int>(std::min(image, most));
    a.memory.bytes = static_cast<int>(std::min(round_up(bytes, 16), most));
  }
}

}  // namespace kvarts::kernels

namespace kvarts::cuda {

template <codec_type Codec, packing From, packing To>
problem explain_repack(view<Codec, std::byte const, From> const& src, batch const& from,
                       view<Codec, std::byte, To> const& dst, batch const& to) noexcept {
  using namespace kernels;
  if (auto const p = explain_coded<Codec, From>(src.map, src.data)) return p;
  if (auto const p = explain_coded<Codec, To>(dst.map, dst.data)) return p;
  if (auto const p = explain_alike(src.map, dst.map)) return p;
  if (auto const p = explain_rows(src.map, {from, nullptr, 0})) return p;
  if (auto const p = explain_rows(dst.map, {to, nullptr, 0})) return p;
  repack_arguments<view<Codec, std::byte const, From>, view<Codec, std::byte, To>> a{src, dst};
  plan_repack(a);
  return explain_memory(src.map, a.memory);
}

template <codec_type Codec, packing From, packing To>
cudaError_t repack(view<Codec, std::byte const, From> src, batch const& from,
                   view<Codec, std::byte, To> dst, batch const& to, cudaStream_t stream) noexcept {
  using namespace kernels;
  if (auto const p = explain_repack(src, from, dst, to)) return error_of(p);
  using source = view<Codec, std::byte const, From>;
  using target = view<Codec, std::byte, To>;
  repack_arguments<source, target> a{src, dst, from, to};
  plan_repack(a);
  rows const which{from, nullptr, 0};
  std::int64_t const items = row_division(which, a.unit).items(0) * src.map.heads;
  return launch(repack_kernel<source, target>, shape_for_warps(items, a.memory), stream, a, which,
                items);
}

}  // namespace kvarts::cuda
