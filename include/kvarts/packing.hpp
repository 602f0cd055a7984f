// SPDX-License-Identifier: Apache-2.0
/// @file
/// In which order the code bits of a tile lie: a bijection (token, channel, code bit) -> bit
/// offset.
#pragma once

#include <kvarts/bits.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvarts {

/// Extent of the codes that are packed together: `tokens` x `channels` codes of `bits` bits each.
struct tile_shape {
  std::int32_t tokens = 0;
  std::int32_t channels = 0;
  std::int32_t bits = 0;
};

/// A packing says where each code bit of a tile lies; one code's bits may lie apart. `tile_bits` is
/// the size of the plane; bits that no code owns are written as zeros, by the packing's
/// `clear_unowned(plane, shape)` where it has such bits before the last code. A packing may offer
/// `store_run` and `load_run` as `linear` does when it knows a faster way than bit by bit, and
/// refuse shapes through `check(shape)`. Interoperable packings store a codec's published bytes;
/// one with `offset_binary` stores codes u as they are.
template <class P>
concept packing = requires(tile_shape s, int token, int channel, int bit) {
  { P::tile_bits(s) } -> std::same_as<std::int64_t>;
  { P::bit_offset(s, token, channel, bit) } -> std::same_as<std::int64_t>;
};

/// Token-major, channel after channel, least significant bit first: a stream any reader can decode.
struct linear {
  static constexpr std::int64_t tile_bits(tile_shape s) noexcept {
    return std::int64_t{s.tokens} * s.channels * s.bits;
  }

  static constexpr std::int64_t bit_offset(tile_shape s, int token, int channel, int bit) noexcept {
    return (std::int64_t{token} * s.channels + channel) * s.bits + bit;
  }

  /// Writes `count` codes of one token from `channel` on; neighbours that share a byte are kept.
  static void store_run(std::byte* plane, tile_shape s, int token, int channel,
                        std::uint8_t const* codes, int count) noexcept {
    std::int64_t position = bit_offset(s, token, channel, 0);
    int i = 0;
    if (position % 8 == 0) {  // eight codes fill `bits` whole bytes
      for (; i + 8 <= count; i += 8, position += 8 * s.bits) {
        std::uint64_t word = 0;
        for (int k = 0; k < 8; ++k) word |= std::uint64_t{codes[i + k]} << (k * s.bits);
        std::memcpy(plane + position / 8, &word, static_cast<std::size_t>(s.bits));
      }
    }
    for (; i < count; ++i, position += s.bits) store_code(plane, position, s.bits, codes[i]);
  }

  /// Reads `count` codes of one token from `channel` on.
  static void load_run(std::byte const* plane, tile_shape s, int token, int channel,
                       std::uint8_t* codes, int count) noexcept {
    std::int64_t position = bit_offset(s, token, channel, 0);
    auto const mask = static_cast<std::uint8_t>((1u << s.bits) - 1u);
    int i = 0;
    if (position % 8 == 0) {
      for (; i + 8 <= count; i += 8, position += 8 * s.bits) {
        std::uint64_t word = 0;
        std::memcpy(&word, plane + position / 8, static_cast<std::size_t>(s.bits));
        for (int k = 0; k < 8; ++k) {
          codes[i + k] = static_cast<std::uint8_t>((word >> (k * s.bits)) & mask);
        }
      }
    }
    for (; i < count; ++i, position += s.bits) codes[i] = load_code(plane, position, s.bits);
  }

 private:
  /// A code spans at most two bytes; the second is touched only when it does.
  static void store_code(std::byte* plane, std::int64_t position, int bits,
                         std::uint8_t code) noexcept {
    auto const shift = static_cast<int>(position % 8);
    std::byte* const at = plane + position / 8;
    unsigned const mask = ((1u << bits) - 1u) << shift;
    unsigned const value = static_cast<unsigned>(code) << shift;
    at[0] = static_cast<std::byte>((std::to_integer<unsigned>(at[0]) & ~mask) | (value & 0xFFu));
    if (shift + bits > 8) {
      at[1] =
          static_cast<std::byte>((std::to_integer<unsigned>(at[1]) & ~(mask >> 8)) | (value >> 8));
    }
  }

  static std::uint8_t load_code(std::byte const* plane, std::int64_t position, int bits) noexcept {
    auto const shift = static_cast<int>(position % 8);
    std::byte const* const at = plane + position / 8;
    unsigned value = std::to_integer<unsigned>(at[0]) >> shift;
    if (shift + bits > 8) value |= std::to_integer<unsigned>(at[1]) << (8 - shift);
    return static_cast<std::uint8_t>(value & ((1u << bits) - 1u));
  }
};

namespace detail {

/// What the stored bytes of 8-bit codes are XORed with.
template <class Quantizer, class P>
inline constexpr std::uint8_t stored_mask = [] {
  if constexpr (requires { P::offset_binary; }) return std::uint8_t{0};
  return Quantizer::stored_mask;
}();

/// Writes codes of one token through whatever way the packing offers.
template <packing P>
void store_run(std::byte* plane, tile_shape s, int token, int channel, std::uint8_t const* codes,
               int count) noexcept {
  if constexpr (requires { P::store_run(plane, s, token, channel, codes, count); }) {
    P::store_run(plane, s, token, channel, codes, count);
  } else {
    for (int i = 0; i < count; ++i) {
      for (int bit = 0; bit < s.bits; ++bit) {
        std::int64_t const at = P::bit_offset(s, token, channel + i, bit);
        auto const mask = static_cast<std::byte>(1u << (at % 8));
        bool const set = ((codes[i] >> bit) & 1u) != 0;
        plane[at / 8] = set ? (plane[at / 8] | mask) : (plane[at / 8] & ~mask);
      }
    }
  }
}

/// Reads codes of one token through whatever way the packing offers.
template <packing P>
void load_run(std::byte const* plane, tile_shape s, int token, int channel, std::uint8_t* codes,
              int count) noexcept {
  if constexpr (requires { P::load_run(plane, s, token, channel, codes, count); }) {
    P::load_run(plane, s, token, channel, codes, count);
  } else {
    for (int i = 0; i < count; ++i) {
      unsigned code = 0;
      for (int bit = 0; bit < s.bits; ++bit) {
        std::int64_t const at = P::bit_offset(s, token, channel + i, bit);
        code |= ((std::to_integer<unsigned>(plane[at / 8]) >> (at % 8)) & 1u) << bit;
      }
      codes[i] = static_cast<std::uint8_t>(code);
    }
  }
}

/// A packing that has bits without an owner before its last code, and clears them.
template <class P>
concept names_unowned = requires(std::byte* plane, tile_shape s) {
  P::clear_unowned(plane, s);
};

/// True when a tile has bits that no code owns.
template <packing P>
constexpr bool has_unowned(tile_shape s) noexcept {
  return names_unowned<P> || P::tile_bits(s) % 8 != 0;
}

/// Zeros in the bits of a tile that no code owns: those that the packing names, and those behind
/// `tile_bits` in the last byte.
template <packing P>
void clear_unowned(std::byte* plane, tile_shape s) noexcept {
  if constexpr (names_unowned<P>) P::clear_unowned(plane, s);
  std::int64_t const bits = P::tile_bits(s);
  if (bits % 8 != 0) plane[bits / 8] &= static_cast<std::byte>((1u << (bits % 8)) - 1u);
}

}  // namespace detail
}  // namespace kvarts
