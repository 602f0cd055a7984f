// SPDX-License-Identifier: Apache-2.0
/// @file
/// A codec is a quantizer and a grouping: which numbers share one set of parameters.
#pragma once

#include <kvarts/dtype.hpp>
#include <kvarts/quantizer/parameters.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kvarts {

/// Which numbers of one head share parameters.
enum class axis : std::uint8_t {
  row,      ///< all channels of one token
  channel,  ///< a run of channels of one token
  token,    ///< a run of tokens of one channel
};

/// "row", "channel" or "token".
constexpr std::string_view to_string(axis a) noexcept {
  return a == axis::row ? "row" : (a == axis::channel ? "channel" : "token");
}

/// A group length that the layout gives at run time.
inline constexpr int dynamic_group = 0;

/// Codes of a quantizer, grouped. `Group` is the group length G along the axis (rows: none). The
/// last group along channels holds `head_dim mod G` elements; a partial group along tokens is
/// allowed only at the end of an encoded range and cannot be appended to.
template <quantizer Quantizer, axis Along, int Group = dynamic_group>
struct codec {
  static_assert(Group >= 0, "a group length is positive, or dynamic_group");
  static_assert(Along != axis::row || Group == dynamic_group, "a row codec has no group length");
  static_assert(Along == axis::row || !Quantizer::clamps_rows,
                "row quantizers (mid-rise, codebook) take one scale a row: use axis::row");

  using quantizer_type = Quantizer;
  using parameters_type = typename Quantizer::parameters_type;
  using scale_type = typename parameters_type::scale_type;
  static constexpr bool plain = false;
  static constexpr int bits = Quantizer::bits;
  static constexpr axis grouped_along = Along;
  static constexpr int group = Group;
  static constexpr int scale_bytes = sizeof(scale_type);
  static constexpr int zero_bytes = Quantizer::has_zero ? sizeof(half) : 0;

  static constexpr auto name() noexcept { return Quantizer::name(); }
};

/// One scale a row (a token of a head).
template <quantizer Quantizer>
using row_codec = codec<Quantizer, axis::row>;

/// The identity codec: 16-bit values as they are (non-finite ones made finite), for windows,
/// unquantized layers and baselines.
template <class Value>
struct identity {
  static_assert(std::is_same_v<Value, half> || std::is_same_v<Value, bfloat16>,
                "the identity codec stores half or bfloat16");

  using value_type = Value;
  static constexpr bool plain = true;
  static constexpr int bits = 16;
  static constexpr axis grouped_along = axis::row;
  static constexpr int group = dynamic_group;
  static constexpr int scale_bytes = 0;
  static constexpr int zero_bytes = 0;

  static constexpr auto name() noexcept {
    return detail::short_name{}.append(std::is_same_v<Value, half> ? "f16" : "bf16");
  }
};

/// What layouts and programs need to know of a codec, as values.
struct codec_info {
  detail::short_name name{};
  int bits = 0;
  axis grouped_along = axis::row;
  int group = dynamic_group;
  int scale_bytes = 0;
  int zero_bytes = 0;
  bool plain = false;
  dtype scale_type = dtype::f16;  ///< where there are scales
};

/// A codec of kvarts or of a user.
template <class C>
concept codec_type = requires {
  { C::bits } -> std::convertible_to<int>;
  { C::plain } -> std::convertible_to<bool>;
  { C::grouped_along } -> std::convertible_to<axis>;
  { C::group } -> std::convertible_to<int>;
  { C::name() } -> std::convertible_to<std::string_view>;
};

namespace detail {

template <class C>
constexpr dtype scale_type_of() noexcept {
  if constexpr (requires { typename C::scale_type; }) {
    if (std::is_same_v<typename C::scale_type, bfloat16>) return dtype::bf16;
    if (std::is_same_v<typename C::scale_type, float>) return dtype::f32;
  }
  return dtype::f16;
}

}  // namespace detail

/// The values of a codec type.
template <codec_type C>
constexpr codec_info info_of() noexcept {
  codec_info info;
  info.name.append(std::string_view(C::name()));
  info.bits = C::bits;
  info.grouped_along = C::grouped_along;
  info.group = C::group;
  info.scale_bytes = C::scale_bytes;
  info.zero_bytes = C::zero_bytes;
  info.plain = C::plain;
  info.scale_type = detail::scale_type_of<C>();
  return info;
}

}  // namespace kvarts
