// SPDX-License-Identifier: Apache-2.0
/// @file
/// How a warp packs and unpacks codes. A unit is a run of tokens of a tile whose code bits fill
/// bytes that no other token's bits share, so a warp that owns a unit writes it without regard to
/// others.
#pragma once

#include <kvarts/fragment.hpp>
#include <kvarts/kernels/memory.cuh>
#include <kvarts/kernels/primitives.cuh>
#include <kvarts/kernels/unroll.cuh>
#include <kvarts/packing.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>

namespace kvarts::kernels {

/// Units of a packing. `tokens` is the length of a unit; those of a tile begin at its multiples. A
/// run of whole units lies in `bytes` bytes from `offset` on. `pack` makes these bytes (16-byte
/// aligned shared memory) from `codes` `[tokens, channels]`, zeros where no code owns a bit;
/// `unpack` is its inverse. Any packing is served by the primary template, whose unit is a tile and
/// which moves bit by bit.
template <packing P>
struct code_units {
  static constexpr int tokens(tile_shape s) noexcept { return s.tokens; }
  static constexpr std::int64_t offset(tile_shape, int) noexcept { return 0; }
  static constexpr std::int64_t bytes(tile_shape s, int) noexcept {
    return ceil_div(P::tile_bits(s), 8);
  }

  template <int Bits>
  KVARTS_DEVICE static void pack(std::byte* image, tile_shape s, int tokens,
                                 std::uint8_t const* codes) {
    auto const size = static_cast<int>(bytes(s, tokens));
    for (int i = lane_index(); i < size; i += warp_lanes) image[i] = std::byte{0};
    warp_barrier();
    if (lane_index() != 0) return;  // bits of many codes may share a byte
    for_each_bit<Bits>(s, tokens, [&](int code, int bit, std::int64_t at) {
      auto const set = static_cast<unsigned>(codes[code]) >> bit & 1u;
      image[at / 8] |= static_cast<std::byte>(set << (at % 8));
    });
  }

  template <int Bits>
  KVARTS_DEVICE static void unpack(std::byte const* image, tile_shape s, int tokens,
                                   std::uint8_t* codes) {
    if (lane_index() != 0) return;
    for (int i = 0; i < tokens * s.channels; ++i) codes[i] = 0;
    for_each_bit<Bits>(s, tokens, [&](int code, int bit, std::int64_t at) {
      auto const set = std::to_integer<unsigned>(image[at / 8]) >> (at % 8) & 1u;
      codes[code] = static_cast<std::uint8_t>(codes[code] | set << bit);
    });
  }

 private:
  template <int Bits, class F>
  KVARTS_DEVICE static void for_each_bit(tile_shape s, int tokens, F f) {
    for (int i = 0; i < tokens * s.channels; ++i) {
      for (int bit = 0; bit < Bits; ++bit) {
        f(i, bit, P::bit_offset(s, i / s.channels, i % s.channels, bit));
      }
    }
  }
};

/// Eight codes fill whole bytes; a unit is as many tokens as do.
template <>
struct code_units<linear> {
  static constexpr int tokens(tile_shape s) noexcept {
    int const whole = 8 / std::gcd(8, s.channels * s.bits);
    return s.tokens % whole == 0 ? whole : s.tokens;
  }
  static constexpr std::int64_t offset(tile_shape s, int first) noexcept {
    return std::int64_t{first} * s.channels * s.bits / 8;
  }
  static constexpr std::int64_t bytes(tile_shape s, int tokens) noexcept {
    return ceil_div(std::int64_t{tokens} * s.channels * s.bits, 8);
  }

  template <int Bits>
  KVARTS_DEVICE static void pack(std::byte* image, tile_shape s, int tokens,
                                 std::uint8_t const* codes) {
    int const count = tokens * s.channels;
    auto const size = static_cast<int>(bytes(s, tokens));
    for (int first = 8 * lane_index(); first < count; first += 8 * warp_lanes) {
      std::uint64_t word = 0;
      KVARTS_UNROLL
      for (int i = 0; i < 8; ++i) {
        std::uint64_t const code = first + i < count ? codes[first + i] : 0;
        word |= code << (i * Bits);
      }
      KVARTS_UNROLL
      for (int i = 0; i < Bits; ++i) {
        int const at = first / 8 * Bits + i;
        if (at < size) image[at] = static_cast<std::byte>(word >> (8 * i));
      }
    }
  }

  template <int Bits>
  KVARTS_DEVICE static void unpack(std::byte const* image, tile_shape s, int tokens,
                                   std::uint8_t* codes) {
    int const count = tokens * s.channels;
    auto const size = static_cast<int>(bytes(s, tokens));
    for (int first = 8 * lane_index(); first < count; first += 8 * warp_lanes) {
      std::uint64_t word = 0;
      KVARTS_UNROLL
      for (int i = 0; i < Bits; ++i) {
        int const at = first / 8 * Bits + i;
        std::uint64_t const byte = at < size ? std::to_integer<std::uint64_t>(image[at]) : 0;
        word |= byte << (8 * i);
      }
      KVARTS_UNROLL
      for (int i = 0; i < 8; ++i) {
        constexpr unsigned mask = (1u << Bits) - 1u;
        if (first + i < count) {
          codes[first + i] = static_cast<std::uint8_t>(word >> (i * Bits) & mask);
        }
      }
    }
  }
};

/// A unit is a block; a lane packs its own words, eight fields (32 codes, `bits` words) at once.
template <operand Operand>
struct code_units<fragment<Operand>> {
  using packing = fragment<Operand>;

  static constexpr int tokens(tile_shape s) noexcept { return packing::block_tokens(s); }
  static constexpr std::int64_t offset(tile_shape s, int first) noexcept {
    return first / packing::block_tokens(s) * packing::block_bytes(s);
  }
  static constexpr std::int64_t bytes(tile_shape s, int tokens) noexcept {
    return offset(s, tokens);
  }

  template <int Bits>
  KVARTS_DEVICE static void pack(std::byte* image, tile_shape s, int tokens,
                                 std::uint8_t const* codes) {
    for_each_run<Bits>(s, tokens, [&](int block, int run) {
      std::uint32_t words[Bits] = {};
      for_each_code<Bits>(s, block, run, [&](int at, auto word, auto bit, auto spread) {
        std::uint32_t const code = codes[at];
        if constexpr (spread) {
          unrolled<Bits>([&](auto i) { words[word + i] |= (code >> i & 1u) << bit; });
        } else {
          words[word] |= code << bit;
        }
      });
      for_each_word<Bits>(s, block, run,
                          [&](std::int64_t at, auto i) { store_aligned(image + at, words[i]); });
    });
  }

  template <int Bits>
  KVARTS_DEVICE static void unpack(std::byte const* image, tile_shape s, int tokens,
                                   std::uint8_t* codes) {
    for_each_run<Bits>(s, tokens, [&](int block, int run) {
      std::uint32_t words[Bits] = {};
      for_each_word<Bits>(s, block, run, [&](std::int64_t at, auto i) {
        words[i] = load_aligned<std::uint32_t>(image + at);
      });
      for_each_code<Bits>(s, block, run, [&](int at, auto word, auto bit, auto spread) {
        constexpr std::uint32_t mask = (1u << Bits) - 1u;
        std::uint32_t code = 0;
        if constexpr (spread) {
          unrolled<Bits>([&](auto i) { code |= (words[word + i] >> bit & 1u) << i; });
        } else {
          code = words[word] >> bit & mask;
        }
        codes[at] = static_cast<std::uint8_t>(code);
      });
    });
  }

 private:
  /// Fields of a run, and what they fill: `Bits` words, or fewer in the last run.
  static constexpr int run_fields = 8;

  /// Where a field of a run lies.
  template <int Bits, int Field, int Class>
  struct run_place {
    static constexpr detail::code_field at =
        detail::lane_block{Bits, run_fields}.find(Field, Class);
    static constexpr int word = at.word;
    static constexpr int bit = at.bit;
    static constexpr bool spread = at.spread;
  };

  template <int Bits, class F>
  KVARTS_DEVICE static void for_each_run(tile_shape s, int tokens, F f) {
    int const runs = static_cast<int>(ceil_div(packing::lane_block(s).fields, run_fields));
    for (int block = 0; block < tokens / packing::block_tokens(s); ++block) {
      for (int run = 0; run < runs; ++run) f(block, run);
    }
  }

  /// Calls `f(offset of a word in the image, its number in the run)` for this lane's words.
  template <int Bits, class F>
  KVARTS_DEVICE static void for_each_word(tile_shape s, int block, int run, F f) {
    int const words = packing::lane_block(s).words();
    std::int64_t const base = block * packing::block_bytes(s);
    unrolled<Bits>([&](auto i) {
      int const word = run * Bits + i;
      if (word < words) f(base + packing::word_offset(words, lane_index(), word), i);
    });
  }

  /// Calls `f(index in [tokens, channels], word of the run, bit, whether its bits are spread)` for
  /// this lane's codes of a run; all but the index are constants.
  template <int Bits, class F>
  KVARTS_DEVICE static void for_each_code(tile_shape s, int block, int run, F f) {
    int const fields = packing::lane_block(s).fields;
    unrolled<run_fields>([&](auto i) {
      int const field = run * run_fields + i;
      if (field >= fields) return;
      auto const first = packing::code_at(s, {block, lane_index(), field, 0, 0});
      int const index = first.token * s.channels + first.channel;
      int const row = 8 * (Operand == operand::keys ? s.channels : 1);  // the next class
      int const column = Operand == operand::keys ? 1 : s.channels;     // the next parity
      unrolled<2>([&](auto code_class) {
        unrolled<2>([&](auto parity) {
          using at = run_place<Bits, i, code_class>;
          f(index + code_class * row + parity * column, std::integral_constant<int, at::word>{},
            std::integral_constant<int, at::bit + 16 * parity>{}, std::bool_constant<at::spread>{});
        });
      });
    });
  }
};

}  // namespace kvarts::kernels
