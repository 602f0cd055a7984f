// SPDX-License-Identifier: Apache-2.0
/// @file
/// The shipped codecs by name, for programs that choose one at run time. A new codec is one line
/// here.
#pragma once

#include <kvarts/codec.hpp>
#include <kvarts/quantizer.hpp>

#include <string_view>
#include <type_traits>

namespace kvarts {

template <class... Types>
struct type_list {};

/// Quantizers whose groups lie along channels or along tokens.
using group_quantizers =
    type_list<symmetric<2, range::narrow>, symmetric<3, range::narrow>, symmetric<4, range::narrow>,
              symmetric<8, range::narrow>, symmetric<2, range::wide>, symmetric<3, range::wide>,
              symmetric<4, range::wide>, symmetric<8, range::wide>, symmetric<2, range::searched>,
              symmetric<3, range::searched>, symmetric<4, range::searched>,
              symmetric<8, range::searched>, affine<1>, affine<2>, affine<3>, affine<4>, affine<8>,
              hybrid<2, range::narrow>, hybrid<3, range::narrow>, hybrid<4, range::narrow>,
              hybrid<2, range::wide>, hybrid<3, range::wide>, hybrid<4, range::wide>>;

/// Codecs with one scale a row, and plain 16-bit values.
using row_codecs =
    type_list<row_codec<int8_head>, row_codec<midrise<2>>, row_codec<midrise<3>>,
              row_codec<midrise<4>>, row_codec<midrise<8>>, row_codec<codebook<2, float>>,
              row_codec<codebook<3, float>>, row_codec<codebook<4, float>>,
              row_codec<codebook<2, half>>, row_codec<codebook<3, half>>,
              row_codec<codebook<4, half>>, identity<half>, identity<bfloat16>>;

namespace detail {

template <class... Codecs, class F>
constexpr void for_each_type(type_list<Codecs...>, F&& f) {
  (f(std::type_identity<Codecs>{}), ...);
}

template <axis Along, class... Quantizers, class F>
constexpr void for_each_grouped(type_list<Quantizers...>, F&& f) {
  (f(std::type_identity<codec<Quantizers, Along, dynamic_group>>{}), ...);
}

}  // namespace detail

/// Calls `f(std::type_identity<Codec>{})` for every shipped codec; group codecs come once per axis,
/// with the group length left to the layout.
template <class F>
constexpr void for_each_codec(F&& f) {
  detail::for_each_type(row_codecs{}, f);
  detail::for_each_grouped<axis::channel>(group_quantizers{}, f);
  detail::for_each_grouped<axis::token>(group_quantizers{}, f);
}

/// Calls `f` with the codec of this name, grouped along `along` (row codecs ignore it); false, and
/// no call, when there is none.
template <class F>
constexpr bool visit_codec(std::string_view name, axis along, F&& f) {
  bool found = false;
  for_each_codec([&](auto tag) {
    using Codec = typename decltype(tag)::type;
    bool const fits = Codec::grouped_along == axis::row || Codec::grouped_along == along;
    if (found || !fits || std::string_view(Codec::name()) != name) return;
    found = true;
    f(tag);
  });
  return found;
}

}  // namespace kvarts
