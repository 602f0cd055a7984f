// SPDX-License-Identifier: Apache-2.0
/// @file
/// Blocks of 32 (or 16) tokens of one head: where their codes and parameters lie, and a lane's
/// words of them.
#pragma once

#include <kvarts/cuda/batch.hpp>
#include <kvarts/cuda/gemv_plan.hpp>
#include <kvarts/fragment.hpp>
#include <kvarts/kernels/format.cuh>
#include <kvarts/kernels/memory.cuh>
#include <kvarts/kernels/unroll.cuh>
#include <kvarts/layout.hpp>

#include <bit>

namespace kvarts::kernels {

/// Blocks that share a multiprocessor: as many as leave the registers that a shape needs.
template <int HeadDim, int Tiles>
inline constexpr int gemv_blocks = HeadDim* Tiles > 128 ? 2 : (Tiles == 1 ? 4 : 3);

/// A plane as kernels step through it: one multiplication of 32 bits a stride.
struct plane_steps {
  std::int64_t offset;
  std::int64_t head_stride;
  std::uint32_t tile_stride;
  std::uint32_t page_stride;

  plane_steps() = default;
  explicit plane_steps(plane const& p) noexcept
      : offset(p.offset),
        head_stride(p.head_stride),
        tile_stride(static_cast<std::uint32_t>(p.tile_stride)),
        page_stride(static_cast<std::uint32_t>(p.page_stride)) {}
};

/// The memory of a view and of a batch, for kernels. Pages and tiles have powers of two of tokens;
/// positions fit into 31 bits.
struct block_map {
  std::byte const* data;
  plane_steps codes;
  plane_steps scales;
  plane_steps zeros;
  std::uint32_t page_log2;
  std::uint32_t minus_page_tokens;  ///< modulo 2^32: what is left is one multiply-add
  std::uint32_t tile_log2;
  std::uint32_t minus_tile_tokens;
  std::uint32_t group_log2;  ///< of groups along tokens
  cuda::batch batch;
};

/// The map of a layout that `explain` accepts.
inline block_map map_of(std::byte const* data, layout const& m, cuda::batch const& b) noexcept {
  auto const page = static_cast<std::uint32_t>(m.page_tokens);
  auto const tile = static_cast<std::uint32_t>(m.tile_tokens);
  auto const log2 = [](std::uint32_t n) { return static_cast<std::uint32_t>(std::countr_zero(n)); };
  return {data,
          plane_steps(m.codes),
          plane_steps(m.scales),
          plane_steps(m.zeros),
          log2(page) % 32,
          0u - page,
          log2(tile),
          0u - tile,
          log2(static_cast<std::uint32_t>(m.group)) % 32,
          b};
}

/// Where one tile of one head lies, and the first token of a block in it.
struct tile_place {
  std::byte const* codes;
  std::byte const* scales;
  std::byte const* zeros;
  std::uint32_t slot;
};

/// Where the planes of one head of one sequence begin, those of its pool where there are pages.
struct head_planes {
  std::byte const* codes;
  std::byte const* scales;
  std::byte const* zeros;
};

KVARTS_DEVICE head_planes find_planes(block_map const& m, int sequence, int head) {
  std::int64_t const to =
      m.batch.block_tables == nullptr ? sequence * m.batch.sequence_stride : std::int64_t{0};
  auto const start = [&](plane_steps const& p) {
    return m.data + to + p.offset + head * p.head_stride;
  };
  return {start(m.codes), start(m.scales), start(m.zeros)};
}

/// The block table of a sequence; null where there are no pages.
KVARTS_DEVICE std::int32_t const* find_table(block_map const& m, int sequence) {
  if (m.batch.block_tables == nullptr) return nullptr;
  return m.batch.block_tables + sequence * m.batch.table_stride;
}

/// A token's page, and its position there; page 0 where there are none.
struct paged_token {
  std::uint32_t page;
  std::uint32_t position;
};

KVARTS_DEVICE paged_token find_page(block_map const& m, std::int32_t const* table,
                                    std::uint32_t token) {
  if (table == nullptr) return {0, token};
  std::uint32_t const index = token >> m.page_log2;
  return {static_cast<std::uint32_t>(table[index]), token + index * m.minus_page_tokens};
}

/// The tile of a token.
KVARTS_DEVICE tile_place find_tile(block_map const& m, head_planes const& head, paged_token t) {
  std::uint32_t const tile = t.position >> m.tile_log2;
  auto const step = [&](plane_steps const& p) {
    return static_cast<std::int64_t>(std::uint64_t{t.page} * p.page_stride +
                                     std::uint64_t{tile} * p.tile_stride);
  };
  return {head.codes + step(m.codes), head.scales + step(m.scales), head.zeros + step(m.zeros),
          t.position + tile * m.minus_tile_tokens};
}

/// The tiles of one head of one sequence.
class head_tiles {
 public:
  KVARTS_DEVICE head_tiles(block_map const& m, int sequence, int head)
      : m_(m), planes_(find_planes(m, sequence, head)), table_(find_table(m, sequence)) {}

  /// The tile of a token.
  KVARTS_DEVICE tile_place find(std::int64_t token) const {
    return find_tile(m_, planes_, find_page(m_, table_, static_cast<std::uint32_t>(token)));
  }

 private:
  block_map const& m_;
  head_planes planes_;
  std::int32_t const* table_;
};

/// The tile of token `token` of a sequence.
KVARTS_DEVICE tile_place find_tile(block_map const& m, int sequence, int head, std::int64_t token) {
  return head_tiles(m, sequence, head).find(token);
}

/// Tokens of a sequence, and the blocks of `Block` tokens that hold them.
struct token_span {
  std::int64_t begin;
  std::int64_t end;
};

KVARTS_DEVICE token_span span_of(cuda::batch const& b, int sequence) {
  return {b.begins == nullptr ? 0 : b.begins[sequence], b.ends[sequence]};
}

/// Words that a lane has of a block.
template <int Bits, int HeadDim, int Block>
inline constexpr int lane_words = detail::lane_block{Bits, Block* HeadDim / 128}.words();

/// Loads a lane's words of a block: 16 bytes at a time, then 8 and 4 where words are left.
template <int Words>
KVARTS_DEVICE void load_words(std::byte const* block, int lane, std::uint32_t (&words)[Words]) {
  constexpr int whole = Words / 4 * 4;
  auto const place = static_cast<std::uint32_t>(lane);
  std::byte const* const chunks = block + place * 16;
  unrolled<Words / 4>([&](auto chunk) {
    words4 const v = load_once_16(chunks + chunk * (warp_lanes * 16));
    unrolled<4>([&](auto i) { words[chunk * 4 + i] = v.w[i]; });
  });
  if constexpr (Words % 4 >= 2) {
    load_once_8(block + whole * warp_lanes * 4 + place * 8, words[whole], words[whole + 1]);
  }
  if constexpr (Words % 2 == 1) {
    words[Words - 1] = load_once_4(block + (Words - 1) * warp_lanes * 4 + place * 4);
  }
}

/// The same of the block of `Block` tokens at the slot of a tile.
template <int Block, int Words>
KVARTS_DEVICE void load_block(tile_place const& tile, int lane, std::uint32_t (&words)[Words]) {
  static_assert(Words * warp_lanes * 4 % Block == 0);
  constexpr std::uint32_t slot_bytes = Words * warp_lanes * 4 / Block;
  load_words(tile.codes + std::uint64_t{tile.slot} * slot_bytes, lane, words);
}

/// A stored scale or zero-point as a float.
template <class Stored>
KVARTS_DEVICE float load_number(std::byte const* plane, std::int64_t index) {
  if constexpr (std::is_same_v<Stored, float>) {
    return load_aligned<float>(plane + index * 4);
  } else {
    auto const bits = load_aligned<std::uint16_t>(plane + index * 2);
    if constexpr (std::is_same_v<Stored, half>) return half_to_float(bits);
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
}

/// `Count` stored numbers that follow each other, with as few loads as their bytes allow.
template <class Stored, int Count>
KVARTS_DEVICE void load_numbers(std::byte const* plane, std::int64_t first, float (&to)[Count]) {
  if constexpr (std::is_same_v<Stored, half> && Count % 2 == 0) {
    constexpr int words = Count % 4 == 0 ? 2 : 1;
    struct alignas(4 * words) chunk {
      std::uint32_t w[words];
    };
    unrolled<Count / (2 * words)>([&](auto i) {
      auto const loaded = load_aligned<chunk>(plane + (first + i * (2 * words)) * 2);
      unrolled<words>([&](auto w) {
        float_pair const p = unpack_half2(loaded.w[w]);
        to[(i * words + w) * 2] = p.low;
        to[(i * words + w) * 2 + 1] = p.high;
      });
    });
  } else {
    unrolled<Count>([&](auto i) { to[i] = load_number<Stored>(plane, first + i); });
  }
}

/// Scale and zero of a group, such that every code u of it stands for `scale u + zero`.
struct group_values {
  float scale;
  float zero;
};

/// The values of `Count` groups that follow each other; `lowest` as in `level_values`. Uniform
/// formats fold `lowest` into sums elsewhere and get zero 0.
template <class Format, int Count>
KVARTS_DEVICE void load_groups(tile_place const& tile, std::int64_t first, float lowest,
                               group_values (&to)[Count]) {
  float scales[Count];
  float zeros[Count] = {};
  load_numbers<typename Format::scale_type>(tile.scales, first, scales);
  if constexpr (Format::has_zero) load_numbers<half>(tile.zeros, first, zeros);
  unrolled<Count>([&](auto i) {
    if constexpr (Format::level_kind == levels::hybrid) {
      // The sign bit says affine; the scale is the magnitude either way.
      std::uint32_t const bits = std::bit_cast<std::uint32_t>(scales[i]);
      float const scale = std::bit_cast<float>(bits & 0x7FFFFFFFu);
      to[i] = {scale, (bits >> 31) != 0 ? zeros[i] : scale * lowest};
    } else {
      to[i] = {scales[i], zeros[i]};
    }
  });
}

/// The values of one group.
template <class Format>
KVARTS_DEVICE group_values load_group(tile_place const& tile, std::int64_t index, float lowest) {
  group_values v[1];
  load_groups<Format>(tile, index, lowest, v);
  return v[0];
}

}  // namespace kvarts::kernels
