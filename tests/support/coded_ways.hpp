// SPDX-License-Identifier: Apache-2.0
/// @file
/// Codes and parameters as golden vectors list them, by three ways that must agree: the quantizer
/// group by group, row records, and head tiles.
#pragma once

#include <kvarts/decode.hpp>
#include <kvarts/encode.hpp>
#include <kvarts/make_layout.hpp>
#include <kvarts/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace kvarts::test {

/// Codes `[tokens, heads, head_dim]`; parameters of groups along channels `[tokens, heads,
/// groups]`, along tokens `[groups, heads, head_dim]`, of rows `[tokens, heads]`; `decoded` in
/// coded space.
template <class Scale>
struct coded_numbers {
  std::vector<std::uint8_t> codes;
  std::vector<Scale> scales;
  std::vector<half> zeros;
  std::vector<float> decoded;
  std::int64_t nonfinite = 0;
};

template <class Codec>
concept has_half_scales = std::same_as<typename Codec::scale_type, half>;

template <class Codec>
using coded_by = coded_numbers<typename Codec::scale_type>;

/// Rows as floats with NaN and infinities replaced as the codecs say, and how many there were.
struct finite_rows {
  std::vector<float> values;
  std::int64_t nonfinite = 0;
};

template <class T>
finite_rows make_finite_rows(source_view const& source, float largest) {
  finite_rows rows;
  for (std::int64_t t = 0; t < source.map.tokens; ++t) {
    for (int h = 0; h < source.map.heads; ++h) {
      for (int d = 0; d < source.map.head_dim; ++d) {
        auto const x = static_cast<float>(
            load_unaligned<T>(source.row(h, t) + d * static_cast<int>(sizeof(T))));
        if (!std::isfinite(x)) ++rows.nonfinite;
        rows.values.push_back(std::isnan(x) ? 0.0f : std::clamp(x, -largest, largest));
      }
    }
  }
  return rows;
}

inline finite_rows make_finite_rows(source_view const& source) {
  switch (source.type) {
    case dtype::f16: return make_finite_rows<half>(source, 65504.0f);
    case dtype::bf16: return make_finite_rows<bfloat16>(source, 0x1.FEp127f);
    default: return make_finite_rows<float>(source, 0x1.FFFFFEp127f);
  }
}

/// Every group of one head's rows `[tokens, head_dim]` through `Quantizer::quantize`, without
/// layouts.
template <class Codec>
coded_by<Codec> quantize_groups(std::vector<float> const& rows, int head_dim, int group) {
  using quantizer = typename Codec::quantizer_type;
  auto const tokens = static_cast<int>(rows.size()) / head_dim;
  coded_by<Codec> out;
  out.codes.resize(rows.size());
  out.decoded.resize(rows.size());
  auto const one_group = [&](int first, int count, int step) {
    std::vector<float> x;
    for (int i = 0; i < count; ++i) x.push_back(rows[static_cast<std::size_t>(first + i * step)]);
    std::vector<std::uint8_t> u(x.size());
    auto const p = quantizer::quantize(x.data(), count, u.data());
    decoding const with = quantizer::decode_with(p);
    for (int i = 0; i < count; ++i) {
      auto const at = static_cast<std::size_t>(first + i * step);
      auto const code = u[static_cast<std::size_t>(i)];
      out.codes[at] = code;
      out.decoded[at] = with.scale * quantizer::level(code, p, count) + with.zero;
    }
    out.scales.push_back(p.scale);
    if (Codec::zero_bytes != 0) out.zeros.push_back(p.zero);
  };
  bool const along_tokens = Codec::grouped_along == axis::token;
  int const length = Codec::grouped_along == axis::row ? head_dim : group;
  int const outer = along_tokens ? length : 1;
  for (int t = 0; t < tokens; t += outer) {
    for (int d = 0; d < head_dim; d += along_tokens ? 1 : length) {
      int const left = along_tokens ? tokens - t : head_dim - d;
      one_group(t * head_dim + d, std::min(length, left), along_tokens ? head_dim : 1);
    }
  }
  return out;
}

/// Reads all that a view holds through the public decoders.
template <class View>
coded_by<typename View::codec> read_back(View const& view, std::int64_t tokens) {
  using codec = typename View::codec;
  layout const& m = view.map;
  auto const width = static_cast<std::size_t>(m.head_dim);
  coded_by<codec> out;
  int const token_step = codec::grouped_along == axis::token ? m.group : 1;
  int const channel_step = codec::grouped_along == axis::channel ? m.group
                           : codec::grouped_along == axis::token ? 1
                                                                 : m.head_dim;
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int h = 0; h < m.heads; ++h) {
      out.codes.resize(out.codes.size() + width);
      load_codes(view, h, t, &out.codes[out.codes.size() - width]);
      for (int d = 0; d < m.head_dim && t % token_step == 0; d += channel_step) {
        auto const p = load_parameters(view, h, t, d);
        out.scales.push_back(p.scale);
        if (codec::zero_bytes != 0) out.zeros.push_back(p.zero);
      }
    }
  }
  out.decoded.resize(out.codes.size());
  auto const target = make_tensor(out.decoded.data(), m.heads, m.head_dim, tokens);
  if (decode_coded(view, target, {0, tokens}) != status::ok) throw std::runtime_error("no decode");
  return out;
}

/// Memory for a layout, full of ones, and a view of it.
template <class Codec>
struct poisoned {
  explicit poisoned(layout const& m)
      : bytes(static_cast<std::size_t>(m.size_bytes()), std::byte{0xFF}),
        view{bytes.data(), m, {}} {}

  std::vector<std::byte> bytes;
  kvarts::view<Codec> view;
};

/// Encodes all of `source` into poisoned memory.
template <class Codec>
encode_result encode_all(poisoned<Codec>& memory, source_view const& source,
                         transform_view const& transform) {
  auto const result = encode(memory.view, source, {0, source.map.tokens}, transform);
  if (result.code != status::ok) throw std::runtime_error("no encode");
  return result;
}

/// `source` through row records (where tokens are coded by themselves) and through head tiles.
template <class Codec>
std::vector<coded_by<Codec>> encode_ways(source_view const& source, int group,
                                         transform_view const& transform = {}) {
  layout const& m = source.map;
  std::vector<layout> layouts{
      make_head_tiles<Codec>(m.heads, m.head_dim, m.tokens, {0, group, 128})};
  if constexpr (Codec::grouped_along != axis::token) {
    layouts.push_back(make_row_records<Codec>(m.heads, m.head_dim, m.tokens, 16, group));
  }
  std::vector<coded_by<Codec>> ways;
  for (layout const& map : layouts) {
    poisoned<Codec> memory(map);
    auto const result = encode_all(memory, source, transform);
    ways.push_back(read_back(memory.view, m.tokens));
    ways.back().nonfinite = result.nonfinite;
  }
  return ways;
}

}  // namespace kvarts::test
