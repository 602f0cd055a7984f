// SPDX-License-Identifier: Apache-2.0
/// @file
/// The header of a .kvt file as plain values, and what makes one valid; kvt.hpp has its bytes.
#pragma once

#include <kvarts/bits.hpp>
#include <kvarts/dtype.hpp>
#include <kvarts/status.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvarts {

inline constexpr std::int64_t kvt_header_bytes = 256;
inline constexpr std::int64_t kvt_max_head_dim = 1024;
inline constexpr std::int64_t kvt_max_heads = 65536;
inline constexpr std::int64_t kvt_max_tokens = std::int64_t{1} << 40;
/// Most values (tokens x heads x head_dim), so that no product of sizes overflows.
inline constexpr std::int64_t kvt_max_values = std::int64_t{1} << 56;

enum class kvt_group_axis : std::uint8_t { row, channels, tokens };
enum class kvt_scale_type : std::uint8_t { none, f16, bf16, f32 };
enum class kvt_packing : std::uint8_t { linear };
enum class kvt_layout : std::uint8_t { row_records, head_tiles };

static_assert(dtype::f16 == dtype{0} && dtype::bf16 == dtype{1} && dtype::f32 == dtype{2},
              "the numbers of dtype are part of the .kvt format");

/// Bits of `kvt_header::transform`.
inline constexpr std::uint8_t kvt_center = 1;
inline constexpr std::uint8_t kvt_norm = 2;
inline constexpr std::uint8_t kvt_rotation = 4;

/// The fields of a .kvt header as plain values; two headers are equal when all fields are.
struct kvt_header {
  std::array<char, 32> codec{};
  std::uint8_t code_bits = 0;
  kvt_group_axis group_axis = kvt_group_axis::row;
  kvt_scale_type scale_type = kvt_scale_type::none;
  std::uint8_t zero_points = 0;  ///< 1 if every scale has a zero-point
  dtype source = dtype::f16;
  kvt_packing packing = kvt_packing::linear;
  kvt_layout layout = kvt_layout::row_records;
  std::uint8_t transform = 0;  ///< kvt_center | kvt_norm | kvt_rotation
  std::int32_t group = 0;      ///< values that share parameters; 0 for one group a row
  std::int32_t tile_tokens = 1;
  std::int32_t alignment = 1;
  std::int32_t heads = 0;
  std::int32_t head_dim = 0;
  std::int64_t tokens = 0;
  std::uint64_t rotation_seed = 0;
  std::int32_t rotation_rounds = 0;
  std::int64_t payload_bytes = 0;
  std::uint32_t transform_crc = 0;
  std::uint32_t payload_crc = 0;

  bool operator==(kvt_header const&) const = default;

  /// The codec's name without its padding.
  constexpr std::string_view codec_name() const noexcept {
    auto const* const end = std::find(codec.begin(), codec.end(), '\0');
    return {codec.data(), static_cast<std::size_t>(end - codec.begin())};
  }

  /// Sets the codec's name; `check_kvt_header` refuses one of more than 31 characters.
  constexpr void set_codec_name(std::string_view name) noexcept {
    codec.fill('\0');
    std::copy_n(name.begin(), std::min(name.size(), codec.size()), codec.begin());
  }

  /// Bytes of the transform section; at most 2^29 for a valid header.
  constexpr std::int64_t transform_bytes() const noexcept {
    int const tensors =
        ((transform & kvt_center) != 0 ? 1 : 0) + ((transform & kvt_norm) != 0 ? 1 : 0);
    return std::int64_t{4} * tensors * heads * head_dim;
  }

  /// Bytes of the whole file; does not overflow for a valid header.
  constexpr std::int64_t file_bytes() const noexcept {
    return kvt_header_bytes + transform_bytes() + payload_bytes;
  }
};

namespace detail {

constexpr problem kvt_problem(char const* text, std::int64_t first = 0, std::int64_t second = 0) {
  return {status::bad_file, text, first, second};
}

/// Every number within its own bounds.
constexpr problem check_kvt_ranges(kvt_header const& h) noexcept {
  bool const rotated = (h.transform & kvt_rotation) != 0;
  bool const grouped = h.group_axis != kvt_group_axis::row;
  bool const tiled = h.layout != kvt_layout::row_records;
  struct bounds {
    char const* text;
    std::int64_t value, least, most;
  };
  bounds const all[] = {
      {"bits of a code are {}, not 1 to {}", h.code_bits, 1, 32},
      {"group axis is {}, not 0 to {}", static_cast<int>(h.group_axis), 0, 2},
      {"scale type is {}, not 0 to {}", static_cast<int>(h.scale_type), 0, 3},
      {"zero-points is {}, not 0 to {}", h.zero_points, 0, 1},
      {"source type is {}, not 0 to {}", static_cast<int>(h.source), 0, 2},
      {"packing is {}, not {}", static_cast<int>(h.packing), 0, 0},
      {"layout is {}, not 0 to {}", static_cast<int>(h.layout), 0, 1},
      {"transform bits are {}, not 0 to {}", h.transform, 0, 7},
      {grouped ? "group length is {}, not 1 to {}" : "group length of a row codec is {}, not {}",
       h.group, grouped ? 1 : 0, grouped ? 65536 : 0},
      {tiled ? "tokens of a tile are {}, not 1 to {}" : "tokens of a row record are {}, not {}",
       h.tile_tokens, 1, tiled ? 1 << 20 : 1},
      {"alignment is {}, not 1 to {}", h.alignment, 1, 1 << 30},
      {"heads are {}, not 1 to {}", h.heads, 1, kvt_max_heads},
      {"head_dim is {}, not 1 to {}", h.head_dim, 1, kvt_max_head_dim},
      {"tokens are {}, not 0 to {}", h.tokens, 0, kvt_max_tokens},
      {rotated ? "rotation rounds are {}, not 1 to {}" : "rounds without a rotation are {}, not {}",
       h.rotation_rounds, rotated ? 1 : 0, rotated ? 16 : 0},
      {"payload bytes are {}, not 0 to {}", h.payload_bytes, 0, std::int64_t{1} << 62},
  };
  for (bounds const& b : all) {
    if (b.value < b.least || b.value > b.most) return kvt_problem(b.text, b.value, b.most);
  }
  return {};
}

constexpr problem check_kvt_codec_name(kvt_header const& h) noexcept {
  std::string_view const name = h.codec_name();
  if (name.empty()) return kvt_problem("codec name is empty");
  if (name.size() == h.codec.size()) return kvt_problem("codec name is longer than {}", 31);
  for (char const c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) {
      return kvt_problem("codec name has a character of code {}, not a-z, 0-9 or _",
                         static_cast<unsigned char>(c));
    }
  }
  auto const is_zero = [](char c) { return c == '\0'; };
  if (!std::all_of(h.codec.begin() + name.size(), h.codec.end(), is_zero)) {
    return kvt_problem("codec name is not padded with zeros");
  }
  return {};
}

}  // namespace detail

/// What is wrong with the fields of a header, taken by themselves. Whether the payload's size is
/// that of the codec's layout only the caller can tell; here it at least holds all codes.
constexpr problem check_kvt_header(kvt_header const& h) noexcept {
  if (problem const p = detail::check_kvt_ranges(h)) return p;
  if (problem const p = detail::check_kvt_codec_name(h)) return p;
  if (!is_power_of_two(h.alignment)) {
    return detail::kvt_problem("alignment is {}, not a power of two", h.alignment);
  }
  if (h.zero_points != 0 && h.scale_type == kvt_scale_type::none) {
    return detail::kvt_problem("zero-points without scales");
  }
  if (h.rotation_rounds == 0 && h.rotation_seed != 0) {
    return detail::kvt_problem("rotation seed without a rotation");
  }
  std::int64_t const row_values = std::int64_t{h.heads} * h.head_dim;
  if (h.tokens > kvt_max_values / row_values) {
    return detail::kvt_problem("{} tokens of {} values are too many", h.tokens, row_values);
  }
  std::int64_t const code_bytes = ceil_div(h.tokens * row_values * h.code_bits, 8);
  if (h.payload_bytes < code_bytes || (h.tokens == 0 && h.payload_bytes != 0)) {
    return detail::kvt_problem("payload bytes are {}, but the codes take {}", h.payload_bytes,
                               code_bytes);
  }
  return {};
}

}  // namespace kvarts
