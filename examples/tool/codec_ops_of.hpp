// SPDX-License-Identifier: Apache-2.0
/// @file
/// `codec_ops` of a codec type. Each of codec_ops_{row,channel,token}.cpp instantiates the codecs
/// of one axis, so that they compile side by side.
#pragma once

#include "codec_ops.hpp"

#include <kvarts/codec_list.hpp>
#include <kvarts/decode.hpp>
#include <kvarts/encode.hpp>
#include <kvarts/gemv.hpp>
#include <kvarts/make_layout.hpp>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace kvarts::tool {

/// Who published a quantizer; those not named here are kvarts' own.
template <class Quantizer>
constexpr origin published_by(std::type_identity<Quantizer>) noexcept {
  return origin::kvarts;
}
template <int Bits, range Range>
constexpr origin published_by(std::type_identity<symmetric<Bits, Range>>) noexcept {
  return Range == range::searched ? origin::kvarts : origin::innerq;
}
template <int Bits, range Range>
constexpr origin published_by(std::type_identity<hybrid<Bits, Range>>) noexcept {
  return origin::innerq;
}
template <int Bits>
constexpr origin published_by(std::type_identity<affine<Bits>>) noexcept {
  return origin::kivi;
}
template <int Bits>
constexpr origin published_by(std::type_identity<codebook<Bits, float>>) noexcept {
  return origin::turboquant;
}
constexpr origin published_by(std::type_identity<int8_head>) noexcept { return origin::hiqcache; }

template <codec_type C>
class codec_ops_of final : public codec_ops {
 public:
  codec_info info() const noexcept override { return info_of<C>(); }

  origin source() const noexcept override {
    if constexpr (C::plain) {
      return origin::baseline;
    } else {
      return published_by(std::type_identity<typename C::quantizer_type>{});
    }
  }

  void describe(kvt_header& h) const noexcept override {
    h.set_codec_name(std::string_view(C::name()));
    h.code_bits = static_cast<std::uint8_t>(C::bits);
    h.group_axis = C::grouped_along == axis::row       ? kvt_group_axis::row
                   : C::grouped_along == axis::channel ? kvt_group_axis::channels
                                                       : kvt_group_axis::tokens;
    h.scale_type = scale_type();
    h.zero_points = C::zero_bytes != 0 ? 1 : 0;
  }

  layout make_layout(kvt_header const& h) const override {
    if constexpr (C::grouped_along != axis::token) {
      if (h.layout == kvt_layout::row_records) {
        return make_row_records<C>(h.heads, h.head_dim, h.tokens, h.alignment, h.group);
      }
    } else if (h.layout == kvt_layout::row_records) {
      throw error(status::bad_tile, "row records cannot hold groups of tokens");
    }
    return make_head_tiles<C>(h.heads, h.head_dim, h.tokens, {h.tile_tokens, h.group, h.alignment});
  }

  encode_result encode(coded_target dst, source_view src, token_range tokens,
                       transform_view const& transform) const noexcept override {
    return kvarts::encode(of(dst), src, tokens, transform);
  }

  status decode(coded_source src, target_view dst, token_range tokens,
                transform_view const& transform) const noexcept override {
    return kvarts::decode(of(src), dst, tokens, transform);
  }

  status gemv_qk(coded_source keys, token_range tokens, int query_heads, float const* queries,
                 double const* bias, float* scores) const noexcept override {
    return kvarts::gemv_qk(of(keys), tokens, query_heads, queries, bias, scores);
  }

  status gemv_pv(coded_source values, token_range tokens, int query_heads, float const* p,
                 float* output) const noexcept override {
    return kvarts::gemv_pv(of(values), tokens, query_heads, p, output);
  }

  void load_codes([[maybe_unused]] coded_source src, [[maybe_unused]] int head,
                  [[maybe_unused]] std::int64_t token,
                  [[maybe_unused]] std::uint8_t* codes) const noexcept override {
    if constexpr (!C::plain) kvarts::load_codes(of(src), head, token, codes);
  }

  stored_parameters load_parameters([[maybe_unused]] coded_source src, [[maybe_unused]] int head,
                                    [[maybe_unused]] std::int64_t token,
                                    [[maybe_unused]] int channel) const noexcept override {
    if constexpr (C::plain) {
      return {};
    } else {
      auto const p = kvarts::load_parameters(of(src), head, token, channel);
      if constexpr (std::is_same_v<typename C::scale_type, float>) {
        return {std::bit_cast<std::uint32_t>(p.scale), p.zero.bits};
      } else {
        return {p.scale.bits, p.zero.bits};
      }
    }
  }

 private:
  static constexpr kvt_scale_type scale_type() noexcept {
    if constexpr (C::plain) {
      return kvt_scale_type::none;
    } else if constexpr (std::is_same_v<typename C::scale_type, float>) {
      return kvt_scale_type::f32;
    } else {
      return std::is_same_v<typename C::scale_type, half> ? kvt_scale_type::f16
                                                          : kvt_scale_type::bf16;
    }
  }

  template <class Byte>
  static view<C, Byte> of(coded_view<Byte> coded) noexcept {
    return {coded.data, coded.map, {}};
  }
};

/// The codec of this name among those grouped along `Along`.
template <axis Along>
codec_ops const* find_codec_along(std::string_view name) {
  codec_ops const* found = nullptr;
  for_each_codec([&](auto tag) {
    using Codec = typename decltype(tag)::type;
    if constexpr (Codec::grouped_along == Along) {
      static codec_ops_of<Codec> const ops;
      if (std::string_view(Codec::name()) == name) found = &ops;
    }
  });
  return found;
}

extern template codec_ops const* find_codec_along<axis::row>(std::string_view);
extern template codec_ops const* find_codec_along<axis::channel>(std::string_view);
extern template codec_ops const* find_codec_along<axis::token>(std::string_view);

}  // namespace kvarts::tool
