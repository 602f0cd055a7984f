// SPDX-License-Identifier: Apache-2.0
/// @file
/// The host reference decoder: codes back to rows, in coded space or in model space.
#pragma once

#include <kvarts/encode.hpp>

namespace kvarts {

namespace detail {

template <class Codec>
typename Codec::parameters_type load_parameters(std::byte const* scales, std::byte const* zeros,
                                                std::int64_t index) noexcept {
  typename Codec::parameters_type p;
  p.scale = load_unaligned<typename Codec::scale_type>(scales + index * Codec::scale_bytes);
  if constexpr (Codec::zero_bytes != 0)
    p.zero = load_unaligned<half>(zeros + index * Codec::zero_bytes);
  return p;
}

}  // namespace detail

/// The stored codes u of one token of one head, `codes[head_dim]`; offset binary for every codec.
/// Token and head must be inside the layout.
template <codec_type Codec, class Byte, packing Packing>
void load_codes(view<Codec, Byte, Packing> const& src, int head, std::int64_t token,
                std::uint8_t* codes) noexcept {
  static_assert(!Codec::plain, "the identity codec has values, not codes");
  auto const tile = src.tile(head, token);
  detail::load_run<Packing>(tile.codes, src.shape(), tile.slot, 0, codes, src.map.head_dim);
  constexpr std::uint8_t mask = detail::stored_mask<typename Codec::quantizer_type, Packing>;
  for (int d = 0; d < src.map.head_dim; ++d) codes[d] ^= mask;
}

/// The stored parameters of the group that holds a channel of a token of a head.
template <codec_type Codec, class Byte, packing Packing>
typename Codec::parameters_type load_parameters(view<Codec, Byte, Packing> const& src, int head,
                                                std::int64_t token, int channel) noexcept {
  auto const tile = src.tile(head, token);
  layout const& m = src.map;
  std::int64_t index = tile.slot;
  if constexpr (Codec::grouped_along == axis::channel) {
    index = tile.slot * ceil_div(m.head_dim, m.group) + channel / m.group;
  } else if constexpr (Codec::grouped_along == axis::token) {
    index = std::int64_t{tile.slot / m.group} * m.head_dim + channel;
  }
  return detail::load_parameters<Codec>(tile.scales, tile.zeros, index);
}

/// Decodes one row in coded space: `row[head_dim]` = scale * level(u) + zero, float32. Token and
/// head must be inside the layout.
template <codec_type Codec, class Byte, packing Packing>
void decode_row(view<Codec, Byte, Packing> const& src, int head, std::int64_t token,
                float* row) noexcept {
  int const head_dim = src.map.head_dim;
  if constexpr (Codec::plain) {
    auto const tile = src.tile(head, token);
    std::byte const* const from = tile.codes + std::int64_t{tile.slot} * head_dim * 2;
    for (int d = 0; d < head_dim; ++d) {
      row[d] = Codec::value_type::from_bits(load_unaligned<std::uint16_t>(from + 2 * d));
    }
  } else {
    using Quantizer = typename Codec::quantizer_type;
    std::uint8_t codes[max_head_dim];
    load_codes(src, head, token, codes);
    int const run = Codec::grouped_along == axis::row       ? head_dim
                    : Codec::grouped_along == axis::channel ? src.map.group
                                                            : 1;
    for (int begin = 0; begin < head_dim; begin += run) {
      auto const p = load_parameters(src, head, token, begin);
      decoding const with = Quantizer::decode_with(p);
      int const n = std::min(run, head_dim - begin);
      for (int d = begin; d < begin + n; ++d) {
        row[d] = with.scale * Quantizer::level(codes[d], p, n) + with.zero;
      }
    }
  }
}

/// Decodes `tokens` of all heads to model space: token `tokens.begin + i` becomes row i of `dst`;
/// rows are rotated back, multiplied by the norm and moved by the center. float32, rounded once to
/// the target's type and saturated at its largest finite value. Nothing is written unless `ok`.
template <codec_type Codec, class Byte, packing Packing>
status decode(view<Codec, Byte, Packing> src, target_view dst, token_range tokens,
              transform_view const& transform = {}) noexcept {
  if (auto const s = detail::check_rows(src, dst, tokens, transform); s != status::ok) return s;
  detail::prepared_transform const prepared(transform, src.map.head_dim);
  alignas(64) float row[max_head_dim];
  for (int head = 0; head < src.map.heads; ++head) {
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
      decode_row(src, head, t, row);
      prepared.to_model(head, row);
      detail::store_saturated(row, dst, head, t - tokens.begin);
    }
  }
  return status::ok;
}

/// `decode` to coded space: no transform is undone.
template <codec_type Codec, class Byte, packing Packing>
status decode_coded(view<Codec, Byte, Packing> src, target_view dst, token_range tokens) noexcept {
  return decode(src, dst, tokens, transform_view{});
}

}  // namespace kvarts
