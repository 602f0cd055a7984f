// SPDX-License-Identifier: Apache-2.0
/// @file
/// The shapes that launches are compiled for. A build that needs fewer defines shorter lists:
/// KVARTS_HEAD_DIMS, KVARTS_BLOCKS, KVARTS_CHANNEL_GROUPS and KVARTS_COLUMN_TILES, numbers
/// separated by commas, and KVARTS_WINDOW_TYPES.
#pragma once

#include <kvarts/codec_list.hpp>

#include <type_traits>
#include <utility>

#if !defined(KVARTS_HEAD_DIMS)
#define KVARTS_HEAD_DIMS 64, 80, 96, 128, 192, 256
#endif
#if !defined(KVARTS_BLOCKS)
#define KVARTS_BLOCKS 32, 16
#endif
#if !defined(KVARTS_CHANNEL_GROUPS)
#define KVARTS_CHANNEL_GROUPS 32, 16, 64, 128
#endif
#if !defined(KVARTS_COLUMN_TILES)
#define KVARTS_COLUMN_TILES 1, 2
#endif
#if !defined(KVARTS_WINDOW_TYPES)
#define KVARTS_WINDOW_TYPES half, bfloat16
#endif

namespace kvarts::kernels {

template <int... Values>
using values_list = std::integer_sequence<int, Values...>;

using head_dims = values_list<KVARTS_HEAD_DIMS>;
/// The head_dims of V beside one of K: the same, and 128 beside 192.
template <int KeyDim>
using value_dims = std::conditional_t<KeyDim == 192, values_list<192, 128>, values_list<KeyDim>>;
using blocks = values_list<KVARTS_BLOCKS>;
using channel_groups = values_list<KVARTS_CHANNEL_GROUPS>;

using column_tiles = values_list<KVARTS_COLUMN_TILES>;
using window_types = type_list<KVARTS_WINDOW_TYPES>;

/// Calls `f(std::integral_constant<int, value>{})` when the list has the value; tells whether.
template <int... Values, class F>
bool visit_value(values_list<Values...>, int value, F&& f) {
  return ((Values == value ? (f(std::integral_constant<int, Values>{}), true) : false) || ...);
}

template <int... Values>
constexpr bool has_value(values_list<Values...>, int value) noexcept {
  return ((Values == value) || ...);
}

}  // namespace kvarts::kernels
