// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a kernel needs of a codec: many codecs share one kernel, because they differ only in how
/// they find their parameters.
#pragma once

#include <kvarts/codec.hpp>
#include <kvarts/fragment.hpp>
#include <kvarts/quantizer.hpp>

#include <algorithm>
#include <cmath>

namespace kvarts::kernels {

/// What a code u of a group stands for, before the group's scale.
enum class levels : std::uint8_t {
  uniform,  ///< u + lowest, one `lowest` for all groups
  zero,     ///< u, and each group has a zero-point
  hybrid,   ///< either of the two, by the sign bit of the group's scale
  table,    ///< an entry of a table
};

/// Codes of `Bits` bits whose parameters are shared along `Along`, in groups of `Group` channels
/// (0: rows, or tokens, whose group length stays a value).
template <int Bits, axis Along, levels Levels, class Scale, int Group = 0>
struct coded_format {
  static constexpr bool plain = false;
  static constexpr int bits = Bits;
  static constexpr axis along = Along;
  static constexpr levels level_kind = Levels;
  static constexpr int group = Group;
  static constexpr bool has_zero = Levels == levels::zero || Levels == levels::hybrid;
  using scale_type = Scale;
};

/// Plain 16-bit values.
template <class Value>
struct plain_format {
  static constexpr bool plain = true;
  static constexpr axis along = axis::row;
  static constexpr int group = 0;
  static constexpr int bits = 16;
  using value_type = Value;
};

/// How a quantizer's levels are told to kernels. Quantizers of users are uniform, or have a zero-
/// point, unless they have `centroids`.
template <class Quantizer>
inline constexpr levels levels_of = [] {
  if constexpr (requires { Quantizer::centroids; }) {
    return levels::table;
  } else if constexpr (requires(typename Quantizer::parameters_type p) {
                         Quantizer::is_affine(p);
                       }) {
    return levels::hybrid;
  } else {
    return Quantizer::has_zero ? levels::zero : levels::uniform;
  }
}();

/// Parts of a token's channels that have a scale each: groups, or all.
template <class Format, int HeadDim>
inline constexpr int channel_parts = [] {
  if constexpr (Format::along != axis::channel) return 1;
  return (HeadDim + Format::group - 1) / std::max(Format::group, 1);
}();

/// The format of a codec; `Group` where its groups lie along channels.
template <class Codec, int Group = 0>
using format_of =
    coded_format<Codec::bits, Codec::grouped_along, levels_of<typename Codec::quantizer_type>,
                 typename Codec::scale_type, Codec::grouped_along == axis::channel ? Group : 0>;

/// What the levels of a codec are, as values for its kernel: `lowest` is the level of code 0
/// (hybrid: of symmetric groups), `table` all levels.
struct level_values {
  float lowest = 0.0f;
  float table[16] = {};
};

/// The level values of a codec at a head_dim.
template <class Codec>
level_values values_of(int head_dim) noexcept {
  using Quantizer = typename Codec::quantizer_type;
  constexpr levels kind = levels_of<Quantizer>;
  level_values v;
  if constexpr (kind == levels::table) {
    for (int u = 0; u < (1 << Codec::bits); ++u) {
      v.table[u] = Quantizer::level(static_cast<std::uint8_t>(u), {}, head_dim);
    }
  } else if constexpr (kind != levels::zero) {
    v.lowest = Quantizer::level(0, {}, head_dim);
  }
  return v;
}

}  // namespace kvarts::kernels
