// SPDX-License-Identifier: Apache-2.0
/// @file
/// Codes of a lane's words as operand registers, by an AND each.
///
/// A field isolated at bit p of a half is the subnormal number u 2^(p - 24), exactly, and tensor
/// cores multiply subnormals. Nothing is converted: the other operand carries 2^(top - p), and the
/// sums are in units of 2^(24 - top). Codebooks look their levels up instead, two at a time.
#pragma once

#include <kvarts/fragment.hpp>
#include <kvarts/kernels/format.cuh>
#include <kvarts/kernels/memory.cuh>
#include <kvarts/kernels/unroll.cuh>

namespace kvarts::kernels {

/// 2^n, for n within -126..127.
constexpr float power_of_two(int n) noexcept {
  return n >= 0 ? static_cast<float>(std::uint64_t{1} << n)
                : 1.0f / static_cast<float>(std::uint64_t{1} << -n);
}

/// A power of two as a half in both halves of a register, for n within -14..15.
constexpr std::uint32_t half2_power(int n) noexcept {
  return static_cast<std::uint32_t>(n + 15) << 10 | static_cast<std::uint32_t>(n + 15) << 26;
}

/// Fields of a lane's words, for one number of bits.
template <int Bits>
struct code_fields {
  static constexpr detail::lane_block block{Bits, 8};

  /// Highest position at which a field comes out.
  static constexpr int top = Bits == 8 ? 0 : (Bits == 3 ? 6 : 8 - Bits);
  static constexpr float unit = power_of_two(24 - top);

  /// Where field `f` comes out, of both classes.
  static constexpr int position(int f) noexcept { return Bits == 8 ? 0 : block.find(f, 0).bit; }

  /// Factor of the other operand for field `f`: 2^(top - position).
  static constexpr int factor_log2(int f) noexcept { return top - position(f); }

  /// The codes of field `Field`: (row g; both columns) and (row g + 8; both columns).
  template <int Field>
  KVARTS_DEVICE static void decode(std::uint32_t const* words, std::uint32_t& class0,
                                   std::uint32_t& class1) {
    constexpr detail::code_field low = block.find(Field, 0);
    constexpr detail::code_field high = block.find(Field, 1);
    constexpr std::uint32_t mask = ((1u << Bits) - 1u) * 0x00010001u;
    class0 = words[low.word] & mask << low.bit;
    if constexpr (Bits == 8) {
      class1 = byte_permute(words[high.word], 0, 0x4341);
    } else if constexpr (high.spread) {
      class1 = (words[high.word] >> 9 & 0x00400040u) | (words[high.word + 1] >> 8 & 0x00800080u) |
               (words[high.word + 2] >> 7 & 0x01000100u);
    } else {
      constexpr int shift = high.bit - position(Field);
      class1 = words[high.word] >> shift & mask << position(Field);
    }
  }
};

/// Levels of a codebook: pairs of halves in shared memory, by the codes of a pair.
template <int Bits>
struct table_fields {
  static constexpr int entries = 1 << 2 * Bits;
  static constexpr float unit = 1.0f;
  static constexpr int factor_log2(int) noexcept { return 0; }

  /// Fills `table[entries]` with all threads of the block; a barrier must follow.
  KVARTS_DEVICE static void fill(std::uint32_t* table, level_values const& values) {
    for (int i = thread_index(); i < entries; i += block_threads()) {
      table[i] = pack_half2(values.table[i % (1 << Bits)], values.table[i >> Bits]);
    }
  }

  template <int Field>
  KVARTS_DEVICE static void decode(std::uint32_t const* words, std::uint32_t const* table,
                                   std::uint32_t& class0, std::uint32_t& class1) {
    std::uint32_t codes[2];
    code_fields<Bits>::template decode<Field>(words, codes[0], codes[1]);
    constexpr int at = code_fields<Bits>::position(Field);
    class0 = entry<at>(table, codes[0]);
    class1 = entry<at>(table, codes[1]);
  }

 private:
  /// The levels of the two codes at bits `At` and `At` + 16: a product leaves low + high 2^Bits in
  /// its upper half, so that a pair costs one shift more than its code does.
  template <int At>
  KVARTS_DEVICE static std::uint32_t entry(std::uint32_t const* table, std::uint32_t codes) {
    std::uint32_t const offset = codes * (4u << 16 | 4u << Bits) >> (16 + At);
    return load_aligned<std::uint32_t>(reinterpret_cast<std::byte const*>(table) + offset);
  }
};

/// Bytes of shared memory that a format's table takes.
template <class Format>
inline constexpr std::size_t table_bytes = [] {
  if constexpr (Format::plain)
    return std::size_t{0};
  else
    return Format::level_kind == levels::table ? std::size_t{4} << 2 * Format::bits : 0;
}();

/// The fields of a format, whichever way it decodes.
template <class Format>
struct fields_of {
  static constexpr bool looks_up = table_bytes<Format> != 0;
  using codes = code_fields<Format::bits>;
  using tables = table_fields<Format::bits>;
  static constexpr float unit = looks_up ? 1.0f : codes::unit;

  static constexpr int factor_log2(int field) noexcept {
    return looks_up ? 0 : codes::factor_log2(field);
  }

  /// Fills the table of a codebook, `table_bytes<Format>` of shared memory.
  KVARTS_DEVICE static void prepare(std::uint32_t* table, level_values const& values) {
    if constexpr (looks_up) {
      tables::fill(table, values);
      block_barrier();
    }
  }

  template <int Field>
  KVARTS_DEVICE static void decode(std::uint32_t const* words, std::uint32_t const* table,
                                   std::uint32_t& class0, std::uint32_t& class1) {
    if constexpr (looks_up) {
      tables::template decode<Field>(words, table, class0, class1);
    } else {
      codes::template decode<Field>(words, class0, class1);
    }
  }
};

/// An operand register that meets a field: multiplied by the field's factor.
template <int FactorLog2>
KVARTS_DEVICE std::uint32_t scaled_operand(std::uint32_t operand) {
  if constexpr (FactorLog2 == 0) return operand;
  return mul_half2(operand, half2_power(FactorLog2));
}

}  // namespace kvarts::kernels
