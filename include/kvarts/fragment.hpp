// SPDX-License-Identifier: Apache-2.0
/// @file
/// The order in which tensor-core lanes consume codes, so that a lane's 16 bytes are already its
/// operand registers: no shuffle, no transpose, one AND for two codes.
#pragma once

#include <kvarts/packing.hpp>
#include <kvarts/status.hpp>

#include <cstddef>
#include <cstdint>

namespace kvarts {

/// Which product reads the codes: q.K^T contracts channels, p.V contracts tokens.
enum class operand : std::uint8_t { keys, values };

namespace detail {

/// Where the two codes of a field lie in a lane's words: those of class 0 and of class 1, at a bit
/// of the lower half-word; the partners (parity 1) lie 16 bits higher.
struct code_field {
  int word = 0;
  int bit = 0;
  bool spread = false;  ///< its three bits are bit 15 of three words that follow each other
};

/// What a lane of a warp holds of one block of a tile: `fields` fields of four codes each, in
/// `words` words. Fields of 1, 2, 4 and 8 bits fill the lower byte of a half-word with class 0 and
/// the upper one with class 1. Eight fields of 3 bits fill three words: five codes and a spare bit
/// in each half-word, the spare bits together one more code.
struct lane_block {
  int bits = 0;
  int fields = 0;

  constexpr int words() const noexcept {
    if (bits == 3) return fields / 8 * 3 + (fields % 8 + 1) / 2;
    return static_cast<int>(ceil_div(fields, 8 / bits));
  }

  constexpr code_field find(int field, int code_class) const noexcept {
    if (bits != 3) {
      int const each = 8 / bits;
      return {field / each, field % each * bits + 8 * code_class};
    }
    // Both classes of a field come out of the AND at the same position once the upper part of the
    // word is shifted down by 9: a factor of the operand then serves both.
    constexpr code_field places[8][2] = {
        {{0, 0}, {0, 9}}, {{0, 3}, {0, 12}}, {{0, 6}, {1, 6}},        {{1, 0}, {1, 9}},
        {{2, 0}, {2, 9}}, {{2, 3}, {2, 12}}, {{2, 6}, {0, 15, true}}, {{1, 3}, {1, 12}}};
    code_field at = places[field % 8][code_class];
    at.word += field / 8 * 3;
    return at;
  }
};

}  // namespace detail

/// Codes in the order of `mma.m16n8k16` operands, in blocks of 32 tokens (16 where a tile does not
/// hold whole 32). K is operand A with 16 tokens as rows, V with 16 channels as rows: lane 4 g + r
/// owns rows g (class 0) and g + 8 (class 1) and, of every 16 columns, 2r, 2r + 1 (field 0) and
/// 2r + 8, 2r + 9 (field 1). Fields of K run over channels, then over the halves of the block; of V
/// over tokens, then over channels. A block is `[chunk of 4 words][lane][16 bytes]`, then 8 and 4
/// bytes a lane where words are left. Tiles hold whole 16 tokens and whole 16 channels.
template <operand Operand>
struct fragment {
  static constexpr operand side = Operand;
  static constexpr int lanes = 32;
  static constexpr bool offset_binary = true;

  /// First fault of a tile's shape.
  static constexpr problem check(tile_shape s) noexcept {
    if (s.tokens % 16 != 0) {
      return {status::bad_tile, "fragment packing needs tiles of whole 16 tokens, not {}",
              s.tokens};
    }
    if (s.channels % 16 != 0) {
      return {status::bad_head_dim, "fragment packing needs a head_dim of whole 16, not {}",
              s.channels};
    }
    return {};
  }

  /// Tokens that are packed together.
  static constexpr int block_tokens(tile_shape s) noexcept { return s.tokens % 32 == 0 ? 32 : 16; }

  static constexpr detail::lane_block lane_block(tile_shape s) noexcept {
    return {s.bits, block_tokens(s) * s.channels / 128};
  }

  static constexpr std::int64_t block_bytes(tile_shape s) noexcept {
    return std::int64_t{lane_block(s).words()} * lanes * 4;
  }

  static constexpr std::int64_t tile_bits(tile_shape s) noexcept {
    return s.tokens / block_tokens(s) * block_bytes(s) * 8;
  }

  /// Where a word of a lane begins in its block of `words` words a lane, in bytes.
  static constexpr std::int64_t word_offset(int words, int lane, int word) noexcept {
    int const whole = words / 4 * 4;
    int const before = words % 4 >= 2 && word >= whole + 2 ? whole + 2 : whole;
    if (word < whole) return std::int64_t{word / 4 * lanes + lane} * 16 + word % 4 * 4;
    int const width = words % 4 >= 2 && word < whole + 2 ? 8 : 4;
    return std::int64_t{before} * lanes * 4 + lane * width + (word - before) * 4;
  }

  /// Where a code lies: the block of its tile, lane, field, class of the row, parity of the column.
  struct place {
    int block = 0;
    int lane = 0;
    int field = 0;
    int code_class = 0;
    int parity = 0;
  };

  static constexpr place locate(tile_shape s, int token, int channel) noexcept {
    int const tokens = block_tokens(s);
    int const slot = token % tokens;
    int const row = Operand == operand::keys ? slot : channel;
    int const column = Operand == operand::keys ? channel : slot;
    int const columns = Operand == operand::keys ? s.channels : tokens;
    return {token / tokens, row % 8 * 4 + column % 8 / 2,
            row / 16 * (columns / 8) + column / 16 * 2 + column % 16 / 8, row % 16 / 8, column % 2};
  }

  /// The token and the channel of a place: the inverse of `locate`.
  struct coordinates {
    int token = 0;
    int channel = 0;
  };

  static constexpr coordinates code_at(tile_shape s, place const& at) noexcept {
    int const tokens = block_tokens(s);
    int const columns = Operand == operand::keys ? s.channels : tokens;
    int const rest = at.field % (columns / 8);
    int const row = at.field / (columns / 8) * 16 + at.code_class * 8 + at.lane / 4;
    int const column = rest / 2 * 16 + rest % 2 * 8 + at.lane % 4 * 2 + at.parity;
    bool const keys = Operand == operand::keys;
    return {at.block * tokens + (keys ? row : column), keys ? column : row};
  }

  static constexpr std::int64_t bit_offset(tile_shape s, int token, int channel, int bit) noexcept {
    place const at = locate(s, token, channel);
    auto const block = lane_block(s);
    auto const field = block.find(at.field, at.code_class);
    int const word = field.spread ? field.word + bit : field.word;
    int const in_word = (field.spread ? field.bit : field.bit + bit) + 16 * at.parity;
    std::int64_t const byte = at.block * block_bytes(s) + word_offset(block.words(), at.lane, word);
    return byte * 8 + in_word;
  }

  /// Zeros in the bits of a tile that no code owns: those of a last, partly filled run of words.
  static void clear_unowned(std::byte* plane, tile_shape s) noexcept {
    auto const block = lane_block(s);
    int const words = block.words();
    int const full = block.bits == 3 ? block.fields / 8 * 3 : block.fields * block.bits / 8;
    for (int word = full; word < words; ++word) {
      std::uint32_t owned = 0;
      for (int field = 0; field < block.fields; ++field) {
        for (int code_class = 0; code_class < 2; ++code_class) {
          auto const at = block.find(field, code_class);
          if (at.word == word && !at.spread) owned |= ((1u << block.bits) - 1u) << at.bit;
        }
      }
      owned |= owned << 16;
      for (int i = 0; i < s.tokens / block_tokens(s); ++i) {
        for (int lane = 0; lane < lanes; ++lane) {
          std::byte* const at = plane + i * block_bytes(s) + word_offset(words, lane, word);
          store_unaligned(at, load_unaligned<std::uint32_t>(at) & owned);
        }
      }
    }
  }

  /// Writes `count` codes of one token from `channel` on; all other codes are kept.
  static void store_run(std::byte* plane, tile_shape s, int token, int channel,
                        std::uint8_t const* codes, int count) noexcept {
    for (int i = 0; i < count; ++i) {
      each_word(plane, s, token, channel + i, [&](std::byte* at, int shift, int first, int bits) {
        std::uint32_t const mask = ((1u << bits) - 1u) << shift;
        std::uint32_t const value = (std::uint32_t{codes[i]} >> first) << shift;
        store_unaligned(at, (load_unaligned<std::uint32_t>(at) & ~mask) | (value & mask));
      });
    }
  }

  /// Reads `count` codes of one token from `channel` on.
  static void load_run(std::byte const* plane, tile_shape s, int token, int channel,
                       std::uint8_t* codes, int count) noexcept {
    for (int i = 0; i < count; ++i) {
      std::uint32_t code = 0;
      each_word(plane, s, token, channel + i,
                [&](std::byte const* at, int shift, int first, int bits) {
                  std::uint32_t const word = load_unaligned<std::uint32_t>(at);
                  code |= ((word >> shift) & ((1u << bits) - 1u)) << first;
                });
      codes[i] = static_cast<std::uint8_t>(code);
    }
  }

 private:
  /// Calls `f(word, shift, first, bits)` for each word with bits of a code: `bits` bits from bit
  /// `first` of the code on lie at `shift`.
  template <class Byte, class F>
  static void each_word(Byte* plane, tile_shape s, int token, int channel, F&& f) noexcept {
    place const at = locate(s, token, channel);
    auto const block = lane_block(s);
    auto const field = block.find(at.field, at.code_class);
    Byte* const base = plane + at.block * block_bytes(s);
    int const shift = field.bit + 16 * at.parity;
    int const parts = field.spread ? block.bits : 1;
    for (int i = 0; i < parts; ++i) {
      f(base + word_offset(block.words(), at.lane, field.word + i), shift, i, block.bits / parts);
    }
  }
};

}  // namespace kvarts
