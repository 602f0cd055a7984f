// SPDX-License-Identifier: Apache-2.0
/// @file
/// The .kvt container: encoded keys or values of one layer, with all that a reader needs to decode
/// them. This header reads and writes bytes in memory; files, sockets and pages are the caller's.
///
/// A file is a header of 256 bytes, the transform and the payload, without gaps. Integers are
/// little-endian. Every byte is under a CRC-32C, so that any changed byte is an error.
///
///     offset  bytes  header field
///          0      8  magic: 89 4B 56 54 0D 0A 1A 0A, which conversion of line ends damages
///          8      2  format version, 1
///         10      2  bytes of this header, 256
///         12      4  alignment: records or tiles begin at multiples of it; a power of two
///         16     32  codec name: a-z, 0-9 and _; at most 31, padded with zeros
///         48      1  bits of a code, 1 to 32
///         49      1  group axis: 0 one group a row, 1 along channels, 2 along tokens
///         50      1  scale type: 0 none, 1 fp16, 2 bf16, 3 fp32
///         51      1  zero-points: 1 if every scale has one (of the scale's type), else 0
///         52      1  type of the values before encoding: 0 fp16, 1 bf16, 2 fp32
///         53      1  packing of codes: 0 linear
///         54      1  layout: 0 row records, 1 head tiles
///         55      1  transform: bit 0 center, bit 1 norm, bit 2 rotation
///         56      4  group length, 0 for one group a row
///         60      4  tokens of a tile, 1 for row records
///         64      4  heads
///         68      4  head_dim
///         72      8  tokens
///         80      8  rotation seed, 0 without rotation
///         88      4  rotation rounds, 0 without rotation
///         92      4  CRC-32C of the transform section
///         96      8  bytes of the payload
///        104      4  CRC-32C of the payload
///        108    144  zero; in pages of a tier the fields of tier/page_header.hpp
///        252      4  CRC-32C of bytes 0 to 251
///
/// The transform section holds the center, then the norm, each fp32 `[heads, head_dim]` and only
/// where its bit is set. The payload is what codec, layout, packing and alignment define.
#pragma once

#include <kvarts/bits.hpp>
#include <kvarts/crc32c.hpp>
#include <kvarts/kvt_header.hpp>
#include <kvarts/status.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kvarts {

namespace detail {

inline constexpr std::array<std::uint8_t, 8> kvt_magic = {0x89, 'K',  'V',  'T',
                                                          '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint16_t kvt_version = 1;
inline constexpr std::size_t kvt_reserved_offset = 108;
inline constexpr std::size_t kvt_crc_offset = 252;

/// Calls `visit(offset, field)` for every field but those that are the same in all files.
template <class Header, class Visit>
constexpr void for_each_kvt_field(Header& header, Visit visit) {
  visit(12, header.alignment);
  visit(16, header.codec);
  visit(48, header.code_bits);
  visit(49, header.group_axis);
  visit(50, header.scale_type);
  visit(51, header.zero_points);
  visit(52, header.source);
  visit(53, header.packing);
  visit(54, header.layout);
  visit(55, header.transform);
  visit(56, header.group);
  visit(60, header.tile_tokens);
  visit(64, header.heads);
  visit(68, header.head_dim);
  visit(72, header.tokens);
  visit(80, header.rotation_seed);
  visit(88, header.rotation_rounds);
  visit(92, header.transform_crc);
  visit(96, header.payload_bytes);
  visit(104, header.payload_crc);
}

/// Sets the CRC of a header whose other bytes are complete.
inline void seal_kvt_header(std::array<std::byte, kvt_header_bytes>& bytes) noexcept {
  store_unaligned(&bytes[kvt_crc_offset],
                  crc32c(std::span<std::byte const>(bytes).first(kvt_crc_offset)));
}

/// What is wrong with the first 256 bytes of `file`, whatever their fields mean.
inline problem check_kvt_frame(std::span<std::byte const> file) noexcept {
  if (file.size() < kvt_header_bytes) {
    return kvt_problem("{} bytes are too few for a header of {}",
                       static_cast<std::int64_t>(file.size()), kvt_header_bytes);
  }
  auto const magic = load_unaligned<std::array<std::uint8_t, 8>>(file.data());
  if (magic != kvt_magic) {
    bool const begins_right = std::equal(&magic[1], &magic[4], &kvt_magic[1]);
    return kvt_problem(begins_right ? "damaged by a transfer that converts line ends or drops bits"
                                    : "not a .kvt file: the first 8 bytes are not its magic");
  }
  auto const version = load_unaligned<std::uint16_t>(&file[8]);
  if (version != kvt_version) {
    return kvt_problem("format version is {}, but only {} is known", version, kvt_version);
  }
  auto const header_bytes = load_unaligned<std::uint16_t>(&file[10]);
  if (header_bytes != kvt_header_bytes) {
    return kvt_problem("header bytes are {}, not {}", header_bytes, kvt_header_bytes);
  }
  auto const stored_crc = load_unaligned<std::uint32_t>(&file[kvt_crc_offset]);
  if (stored_crc != crc32c(file.first(kvt_crc_offset))) {
    return kvt_problem("the header is damaged: its CRC-32C does not match");
  }
  return {};
}

/// The header's bytes from `begin` to its CRC must be zero.
inline problem check_kvt_zeros(std::span<std::byte const> file, std::size_t begin) noexcept {
  auto const reserved = file.subspan(begin, kvt_crc_offset - begin);
  auto const is_zero = [](std::byte b) { return b == std::byte{0}; };
  if (std::all_of(reserved.begin(), reserved.end(), is_zero)) return {};
  return kvt_problem("reserved bytes of the header are not zero, as in a page of a tier");
}

/// The fields of a header whose frame is right, unchecked.
inline kvt_header load_kvt_fields(std::span<std::byte const> file) noexcept {
  kvt_header header;
  for_each_kvt_field(header, [&]<class Field>(std::size_t offset, Field& field) {
    field = load_unaligned<Field>(&file[offset]);
  });
  return header;
}

}  // namespace detail

/// The header's bytes. The header must pass `check_kvt_header`, and its CRCs must be set.
inline std::array<std::byte, kvt_header_bytes> serialize(kvt_header const& header) noexcept {
  std::array<std::byte, kvt_header_bytes> bytes{};
  store_unaligned(bytes.data(), detail::kvt_magic);
  store_unaligned(&bytes[8], detail::kvt_version);
  store_unaligned(&bytes[10], static_cast<std::uint16_t>(kvt_header_bytes));
  detail::for_each_kvt_field(header, [&](std::size_t offset, auto const& field) {
    store_unaligned(&bytes[offset], field);
  });
  detail::seal_kvt_header(bytes);
  return bytes;
}

/// A header that was read: valid when `error` is empty.
struct kvt_header_result {
  kvt_header header;
  problem error;
};

/// Reads and checks a header from the first 256 bytes of `file`; allocates nothing.
inline kvt_header_result parse_kvt_header(std::span<std::byte const> file) noexcept {
  if (problem const p = detail::check_kvt_frame(file)) return {{}, p};
  if (problem const p = detail::check_kvt_zeros(file, detail::kvt_reserved_offset)) return {{}, p};
  kvt_header const header = detail::load_kvt_fields(file);
  return {header, check_kvt_header(header)};
}

/// A whole file that was read: header and sections, valid when `error` is empty.
struct kvt_result {
  kvt_header header;
  std::span<std::byte const> transform;  ///< center, then norm; each fp32 `[heads, head_dim]`
  std::span<std::byte const> payload;
  problem error;
};

/// Reads a whole .kvt file and checks its size and every CRC; allocates nothing. The sections point
/// into `file`.
inline kvt_result parse_kvt(std::span<std::byte const> file) noexcept {
  auto const [header, error] = parse_kvt_header(file);
  if (error) return {{}, {}, {}, error};
  if (static_cast<std::int64_t>(file.size()) != header.file_bytes()) {
    return {{},
            {},
            {},
            detail::kvt_problem("the file has {} bytes, but its header promises {}",
                                static_cast<std::int64_t>(file.size()), header.file_bytes())};
  }
  auto const transform =
      file.subspan(kvt_header_bytes, static_cast<std::size_t>(header.transform_bytes()));
  auto const payload = file.last(static_cast<std::size_t>(header.payload_bytes));
  if (crc32c(transform) != header.transform_crc) {
    return {
        {}, {}, {}, detail::kvt_problem("the transform is damaged: its CRC-32C does not match")};
  }
  if (crc32c(payload) != header.payload_crc) {
    return {{}, {}, {}, detail::kvt_problem("the payload is damaged: its CRC-32C does not match")};
  }
  return {header, transform, payload, {}};
}

}  // namespace kvarts
