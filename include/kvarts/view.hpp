// SPDX-License-Identifier: Apache-2.0
/// @file
/// Views: memory of the caller and a layout. They own nothing, are trivially copyable and are
/// passed by value, to kernels too.
#pragma once

#include <kvarts/dtype.hpp>
#include <kvarts/layout.hpp>
#include <kvarts/status.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace kvarts {

/// Tokens `begin..end-1` of a sequence.
struct token_range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr std::int64_t size() const noexcept { return end - begin; }
};

/// Which physical page holds tokens i * P .. i * P + P - 1: `pages[i]`, for i < count. It indexes
/// positions of the sequence. Layouts without pages need none.
struct block_table {
  std::int32_t const* pages = nullptr;
  std::int64_t count = 0;
};

namespace detail {

/// Where a token lies.
struct token_location {
  std::int64_t page = 0;
  std::int64_t tile = 0;  ///< within the page
  int slot = 0;           ///< within the tile
};

constexpr token_location locate(layout const& m, block_table const& table,
                                std::int64_t token) noexcept {
  token_location at;
  if (m.page_tokens > 0) {
    at.page = table.pages[token / m.page_tokens];
    token %= m.page_tokens;
  }
  at.tile = token / m.tile_tokens;
  at.slot = static_cast<int>(token % m.tile_tokens);
  return at;
}

/// A range must lie in the room (with pages: in the table, whose entries must lie in the pool).
constexpr status check_range(layout const& m, block_table const& table,
                             token_range tokens) noexcept {
  if (tokens.begin < 0 || tokens.end < tokens.begin) return status::bad_tokens;
  if (m.page_tokens == 0) return tokens.end <= m.tokens ? status::ok : status::bad_tokens;
  if (tokens.size() == 0) return status::ok;
  if (table.pages == nullptr) return status::bad_page;
  if ((tokens.end - 1) / m.page_tokens >= table.count) return status::bad_tokens;
  for (std::int64_t i = tokens.begin / m.page_tokens; i * m.page_tokens < tokens.end; ++i) {
    if (table.pages[i] < 0 || table.pages[i] >= m.pages()) return status::bad_page;
  }
  return status::ok;
}

}  // namespace detail

/// The parts of one tile, and the token's place in it.
template <class Byte>
struct tile_parts {
  Byte* codes = nullptr;
  Byte* scales = nullptr;
  Byte* zeros = nullptr;
  int slot = 0;
};

/// One layer of coded K or V. `Byte` is `std::byte`, or `std::byte const` for readers.
template <codec_type Codec, class Byte = std::byte, packing Packing = linear>
struct view {
  static_assert(std::is_same_v<std::remove_const_t<Byte>, std::byte>,
                "Byte is std::byte, maybe const");
  using codec = Codec;
  using packing = Packing;

  Byte* data = nullptr;
  layout map{};
  block_table table{};

  /// The tile that holds a token of a head.
  constexpr tile_parts<Byte> tile(int head, std::int64_t token) const noexcept {
    auto const at = detail::locate(map, table, token);
    return {data + map.codes.at(at.page, at.tile, head),
            data + map.scales.at(at.page, at.tile, head),
            data + map.zeros.at(at.page, at.tile, head), at.slot};
  }

  constexpr tile_shape shape() const noexcept {
    return {map.tile_tokens, map.head_dim, Codec::bits};
  }

  /// A reader's view of the same memory. (A template because some compilers warn of a conversion
  /// that a reader itself never needs.)
  template <class Reader>
  constexpr operator Reader() const noexcept
      requires(std::is_same_v<Reader, view<Codec, std::byte const, Packing>> &&
               !std::is_const_v<Byte>) {
    return {data, map, table};
  }
};

/// One layer of an engine's plain K or V (or queries): rows of `head_dim` elements of `type`, which
/// lie one after another; heads and tokens have any strides.
template <class Byte>
struct tensor_view {
  Byte* data = nullptr;
  dtype type = dtype::f16;
  layout map{};
  block_table table{};

  /// The first element of a token of a head; any alignment.
  constexpr Byte* row(int head, std::int64_t token) const noexcept {
    auto const at = detail::locate(map, table, token);
    return data + map.codes.at(at.page, at.tile, head);
  }

  template <class Reader>
  constexpr operator Reader() const noexcept
      requires(std::is_same_v<Reader, tensor_view<std::byte const>> && !std::is_const_v<Byte>) {
    return {data, type, map, table};
  }
};

using source_view = tensor_view<std::byte const>;
using target_view = tensor_view<std::byte>;

}  // namespace kvarts
