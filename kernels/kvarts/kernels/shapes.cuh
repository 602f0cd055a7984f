// SPDX-License-Identifier: Apache-2.0
/// @file
/// The shapes that launches are compiled for. A build that needs fewer defines shorter lists:
/// KVARTS_HEAD_DIMS, KVARTS_BLOCKS and KVARTS_CHANNEL_GROUPS, numbers separated by commas.
#pragma once

#include <kvarts/config.hpp>

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

namespace kvarts::kernels {

template <int... Values>
using values_list = std::integer_sequence<int, Values...>;

using head_dims = values_list<KVARTS_HEAD_DIMS>;
/// The head_dims of V beside one of K: the same, and 128 beside 192.
template <int KeyDim>
using value_dims = std::conditional_t<KeyDim == 192, values_list<192, 128>, values_list<KeyDim>>;
using blocks = values_list<KVARTS_BLOCKS>;
using channel_groups = values_list<KVARTS_CHANNEL_GROUPS>;

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
