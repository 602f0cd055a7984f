// SPDX-License-Identifier: Apache-2.0
/// @file
/// Views of an engine's plain tensors: `[tokens, heads, head_dim]`, `[heads, tokens, head_dim]`,
/// any other strides, or pages.
#pragma once

#include <kvarts/view.hpp>

#include <type_traits>

namespace kvarts {

/// Order of a contiguous tensor.
enum class order : std::uint8_t {
  token_major,  ///< [tokens, heads, head_dim]
  head_major,   ///< [heads, tokens, head_dim]
};

/// Distances in elements; elements of a row lie one after another.
struct tensor_strides {
  std::int64_t token = 0;
  std::int64_t head = 0;
  std::int64_t page = 0;
};

/// First fault of a plain tensor's extents or strides.
constexpr problem check_tensor(layout const& m, dtype type) noexcept {
  codec_info const plain{.plain = true};
  if (auto const p = detail::check_extents(m, plain)) return p;
  return detail::check_plane(m, m.codes, std::int64_t{m.head_dim} * element_size(type));
}

/// Layout of a plain tensor with any strides, unchecked. `page_tokens` 0 means no pages; with pages
/// `tokens` counts those of all pages and the token stride is that within a page.
constexpr layout plan_tensor(dtype type, int heads, int head_dim, std::int64_t tokens,
                             tensor_strides strides, int page_tokens = 0) noexcept {
  std::int64_t const size = element_size(type);
  layout m;
  m.heads = heads;
  m.head_dim = head_dim;
  m.tokens = tokens;
  m.tile_tokens = 1;
  m.page_tokens = page_tokens;
  m.codes = {0, head_dim * size, strides.token * size, strides.head * size, strides.page * size};
  return m;
}

/// Strides of a contiguous tensor.
constexpr tensor_strides contiguous(order o, int heads, int head_dim,
                                    std::int64_t tokens) noexcept {
  if (o == order::token_major) return {std::int64_t{heads} * head_dim, head_dim, 0};
  return {head_dim, tokens * head_dim, 0};
}

namespace detail {

template <class T>
auto* as_bytes_of(T* data) noexcept {
  using byte = std::conditional_t<std::is_const_v<T>, std::byte const, std::byte>;
  return reinterpret_cast<byte*>(data);
}

}  // namespace detail

#if defined(__cpp_exceptions)

/// Layout of a plain tensor, checked: throws `error` naming strides that overlap or extents outside
/// the limits.
inline layout make_tensor_layout(dtype type, int heads, int head_dim, std::int64_t tokens,
                                 tensor_strides strides, int page_tokens = 0) {
  layout const m = plan_tensor(type, heads, head_dim, tokens, strides, page_tokens);
  throw_if(check_tensor(m, type));
  return m;
}

/// View of a contiguous tensor of `half`, `bfloat16` or `float`; const data gives a `source_view`.
template <class T>
auto make_tensor(T* data, int heads, int head_dim, std::int64_t tokens,
                 order o = order::token_major) {
  constexpr dtype type = detail::dtype_of<T>;
  auto const strides = contiguous(o, heads, head_dim, tokens);
  auto* const bytes = detail::as_bytes_of(data);
  return tensor_view<std::remove_pointer_t<decltype(bytes)>>{
      bytes, type, make_tensor_layout(type, heads, head_dim, tokens, strides), {}};
}

/// View of a tensor with any strides (in elements).
template <class T>
auto make_tensor(T* data, int heads, int head_dim, std::int64_t tokens, tensor_strides strides) {
  constexpr dtype type = detail::dtype_of<T>;
  auto* const bytes = detail::as_bytes_of(data);
  return tensor_view<std::remove_pointer_t<decltype(bytes)>>{
      bytes, type, make_tensor_layout(type, heads, head_dim, tokens, strides), {}};
}

#endif

}  // namespace kvarts
