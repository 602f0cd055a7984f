// SPDX-License-Identifier: Apache-2.0
/// @file
/// The host reference encoder: plain rows to codes, for any codec, packing, layout and transform.
#pragma once

#include <kvarts/rows.hpp>
#include <kvarts/transform.hpp>
#include <kvarts/view.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace kvarts {

/// What an encoder met. On any status but `ok` nothing was written.
struct encode_result {
  status code = status::ok;
  std::int64_t nonfinite = 0;  ///< NaN and infinities in the input, each counted once
};

namespace detail {

/// Source and destination of an encode must describe the same rows.
template <class View, class Byte>
status check_rows(View const& coded, tensor_view<Byte> const& plain, token_range tokens,
                  transform_view const& t) noexcept {
  if (auto const s = check_range(coded.map, coded.table, tokens); s != status::ok) return s;
  auto const plain_range = token_range{0, tokens.size()};
  if (auto const s = check_range(plain.map, plain.table, plain_range); s != status::ok) return s;
  if (plain.map.head_dim != coded.map.head_dim) return status::bad_head_dim;
  if (plain.map.heads != coded.map.heads) return status::bad_heads;
  return check(t, coded.map.heads, coded.map.head_dim).code;
}

/// Zeros behind the tiles, records and pages that a range touches.
template <class View>
void clear_padding(View const& dst, token_range tokens) noexcept {
  layout const& m = dst.map;
  for (plane const* p : {&m.tile_padding, &m.page_padding}) {
    if (p->bytes == 0) continue;
    int const heads = p->head_stride == 0 ? 1 : m.heads;
    std::int64_t const step =
        p->tile_stride != 0 ? m.tile_tokens : std::max<std::int64_t>(m.page_tokens, 1);
    std::int64_t t = tokens.begin;
    while (t < tokens.end) {
      auto const at = locate(m, dst.table, t);
      for (int h = 0; h < heads; ++h) {
        std::memset(dst.data + p->at(at.page, at.tile, h), 0, static_cast<std::size_t>(p->bytes));
      }
      if (p->tile_stride == 0 && m.page_tokens == 0) break;
      t = (t / step + 1) * step;
    }
  }
}

/// Zeros in the bits of the tiles of a range that no code owns.
template <class View>
void clear_unowned_bits(View const& dst, token_range tokens) noexcept {
  using Packing = typename View::packing;
  if (!has_unowned<Packing>(dst.shape())) return;
  std::int64_t const step = dst.map.tile_tokens;
  for (std::int64_t t = tokens.begin; t < tokens.end; t = (t / step + 1) * step) {
    for (int head = 0; head < dst.map.heads; ++head) {
      clear_unowned<Packing>(dst.tile(head, t).codes, dst.shape());
    }
  }
}

template <class Parameters>
void store_parameters(std::byte* scales, std::byte* zeros, std::int64_t index, bool has_zero,
                      Parameters const& p) noexcept {
  store_unaligned(scales + index * std::int64_t{sizeof(p.scale)}, p.scale);
  if (has_zero) store_unaligned(zeros + index * std::int64_t{sizeof(p.zero)}, p.zero);
}

/// Model space to coded space, in place. Quantizers that scale by the row's length take it from
/// before the rotation, as TurboQuant does; the others get 0.
template <class Quantizer>
float to_coded(prepared_transform const& transform, int head, float* row, int head_dim) noexcept {
  transform.normalize(head, row, Quantizer::clamps_rows);
  float length = 0.0f;
  if constexpr (requires { Quantizer::row_length(row, head_dim); }) {
    length = Quantizer::row_length(row, head_dim);
  }
  transform.rotate(row);
  return length;
}

/// One group of a quantizer; `length` as `to_coded` gave it.
template <class Quantizer>
auto quantize(float const* x, int n, std::uint8_t* codes, float length) noexcept {
  if constexpr (requires { Quantizer::quantize(x, n, codes, length); }) {
    return Quantizer::quantize(x, n, codes, length);
  } else {
    return Quantizer::quantize(x, n, codes);
  }
}

/// One token of one head whose parameters are its own: one row, or groups along channels. `row`
/// holds the transformed row.
template <class View>
void encode_row(View const& dst, int head, std::int64_t token, float const* row,
                float length) noexcept {
  using Codec = typename View::codec;
  using Quantizer = typename Codec::quantizer_type;
  std::uint8_t codes[max_head_dim];
  auto const tile = dst.tile(head, token);
  int const head_dim = dst.map.head_dim;
  int const group = Codec::grouped_along == axis::row ? head_dim : dst.map.group;
  std::int64_t index = tile.slot * ceil_div(head_dim, group);
  for (int begin = 0; begin < head_dim; begin += group, ++index) {
    int const n = std::min(group, head_dim - begin);
    auto const p = quantize<Quantizer>(row + begin, n, codes + begin, length);
    store_parameters(tile.scales, tile.zeros, index, Quantizer::has_zero, p);
  }
  constexpr std::uint8_t mask = stored_mask<Quantizer, typename View::packing>;
  if constexpr (mask != 0) {
    for (int d = 0; d < head_dim; ++d) codes[d] ^= mask;
  }
  store_run<typename View::packing>(tile.codes, dst.shape(), tile.slot, 0, codes, head_dim);
}

/// Elements that the buffer of a group of tokens holds; longer groups are coded in strips of
/// channels.
inline constexpr int strip_elements = 16384;

/// One strip of one group of tokens: `columns` holds channel after channel, `count` tokens each. A
/// partial group leaves zero codes in the slots behind it.
template <class View>
void encode_columns(View const& dst, int head, std::int64_t first_token, int count, int channel,
                    int width, float const* columns) noexcept {
  using Quantizer = typename View::codec::quantizer_type;
  constexpr std::uint8_t mask = stored_mask<Quantizer, typename View::packing>;
  std::uint8_t column[max_head_dim];
  std::uint8_t codes[strip_elements];  // [group tokens, width]
  auto const tile = dst.tile(head, first_token);
  int const group = dst.map.group;
  std::memset(codes, 0, static_cast<std::size_t>(group * width));
  std::int64_t const index = std::int64_t{tile.slot / group} * dst.map.head_dim + channel;
  for (int c = 0; c < width; ++c) {
    auto const p = Quantizer::quantize(columns + c * count, count, column);
    store_parameters(tile.scales, tile.zeros, index + c, Quantizer::has_zero, p);
    for (int i = 0; i < count; ++i) codes[i * width + c] = column[i] ^ mask;
  }
  for (int i = 0; i < group; ++i) {
    store_run<typename View::packing>(tile.codes, dst.shape(), tile.slot + i, channel,
                                      codes + i * width, width);
  }
}

/// One group of tokens of one head, strip by strip; rows are read again for each strip, which
/// happens only where group x head_dim exceeds the buffer.
template <class View>
std::int64_t encode_token_group(View const& dst, source_view const& src, int head,
                                std::int64_t first_token, std::int64_t first_row, int count,
                                prepared_transform const& transform) noexcept {
  float row[max_head_dim];
  alignas(64) float columns[strip_elements];
  int const head_dim = dst.map.head_dim;
  int const strip = std::min(head_dim, strip_elements / dst.map.group);
  std::int64_t nonfinite = 0;
  for (int channel = 0; channel < head_dim; channel += strip) {
    int const width = std::min(strip, head_dim - channel);
    nonfinite = 0;
    for (int i = 0; i < count; ++i) {
      nonfinite += load_finite(src, head, first_row + i, row);
      to_coded<typename View::codec::quantizer_type>(transform, head, row, head_dim);
      for (int c = 0; c < width; ++c) columns[c * count + i] = row[channel + c];
    }
    encode_columns(dst, head, first_token, count, channel, width, columns);
  }
  return nonfinite;
}

/// All tokens of a range for one head.
template <class View>
std::int64_t encode_head(View const& dst, source_view const& src, int head, token_range tokens,
                         prepared_transform const& transform) noexcept {
  using Codec = typename View::codec;
  std::int64_t nonfinite = 0;
  if constexpr (Codec::grouped_along == axis::token) {
    for (std::int64_t t = tokens.begin; t < tokens.end; t += dst.map.group) {
      auto const count = static_cast<int>(std::min<std::int64_t>(dst.map.group, tokens.end - t));
      nonfinite += encode_token_group(dst, src, head, t, t - tokens.begin, count, transform);
    }
  } else {
    alignas(64) float row[max_head_dim];
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
      nonfinite += load_finite(src, head, t - tokens.begin, row);
      if constexpr (Codec::plain) {
        transform.normalize(head, row, false);
        transform.rotate(row);
        auto const tile = dst.tile(head, t);
        store_saturated<typename Codec::value_type>(
            row, dst.map.head_dim, tile.codes + std::int64_t{tile.slot} * dst.map.head_dim * 2);
      } else {
        float const length =
            to_coded<typename Codec::quantizer_type>(transform, head, row, dst.map.head_dim);
        encode_row(dst, head, t, row, length);
      }
    }
  }
  return nonfinite;
}

}  // namespace detail

/// Encodes `tokens` of all heads: row i of `src` becomes token `tokens.begin + i` of `dst`. Rows
/// pass through the transform first (float32, each operation rounded); scales are rounded to their
/// stored type before codes are computed; padding is written as zeros. A range for a codec grouped
/// along tokens begins at a group (else `partial_group`); one that ends inside a group codes the
/// tokens there are, and that group cannot be appended to. `src` may not overlap `dst`. Never
/// allocates; uses about 100 KB of stack.
template <codec_type Codec, packing Packing>
encode_result encode(view<Codec, std::byte, Packing> dst, source_view src, token_range tokens,
                     transform_view const& transform = {}) noexcept {
  if (auto const s = detail::check_rows(dst, src, tokens, transform); s != status::ok) return {s};
  if constexpr (Codec::grouped_along == axis::token) {
    if (tokens.begin % dst.map.group != 0) return {status::partial_group};
  }
  detail::prepared_transform const prepared(transform, dst.map.head_dim);
  encode_result result;
  for (int head = 0; head < dst.map.heads; ++head) {
    result.nonfinite += detail::encode_head(dst, src, head, tokens, prepared);
  }
  if constexpr (!Codec::plain) detail::clear_unowned_bits(dst, tokens);
  detail::clear_padding(dst, tokens);
  return result;
}

}  // namespace kvarts
