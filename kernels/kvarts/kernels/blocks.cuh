// SPDX-License-Identifier: Apache-2.0
/// @file
/// Blocks of 32 (or 16) tokens of one head: where their codes and parameters lie, and a lane's
/// words of them.
#pragma once

#include <kvarts/cuda/batch.hpp>
#include <kvarts/cuda/gemv_plan.hpp>
#include <kvarts/fragment.hpp>
#include <kvarts/kernels/format.cuh>
#include <kvarts/kernels/unroll.cuh>
#include <kvarts/layout.hpp>

#include <bit>

namespace kvarts::kernels {

/// Blocks that share a multiprocessor: as many as leave the registers that a shape needs.
template <int HeadDim, int Tiles>
inline constexpr int gemv_blocks = HeadDim* Tiles <= 128 ? 4 : 2;

/// The memory of a view and of a batch, for kernels. Pages and tiles have powers of two of tokens.
struct block_map {
  std::byte const* data;
  plane codes;
  plane scales;
  plane zeros;
  std::int32_t page_log2;  ///< 62 without pages
  std::int32_t tile_log2;
  std::int32_t group;
  cuda::batch batch;
};

/// The map of a layout that `explain` accepts.
inline block_map map_of(std::byte const* data, layout const& m, cuda::batch const& b) noexcept {
  int const page = m.page_tokens == 0 ? 62 : std::countr_zero(static_cast<unsigned>(m.page_tokens));
  int const tile = std::countr_zero(static_cast<unsigned>(m.tile_tokens));
  return {data, m.codes, m.scales, m.zeros, page, tile, m.group, b};
}

/// Where one tile of one head lies, and the first token of a block in it.
struct tile_place {
  std::byte const* codes;
  std::byte const* scales;
  std::byte const* zeros;
  int slot;
};

/// The tile of token `token` of a sequence.
KVARTS_DEVICE tile_place find_tile(block_map const& m, int sequence, int head, std::int64_t token) {
  std::int64_t page = 0;
  std::byte const* data = m.data;
  if (m.batch.block_tables != nullptr) {
    page = m.batch.block_tables[sequence * m.batch.table_stride + (token >> m.page_log2)];
    token &= (std::int64_t{1} << m.page_log2) - 1;
  } else {
    data += sequence * m.batch.sequence_stride;
  }
  std::int64_t const tile = token >> m.tile_log2;
  int const slot = static_cast<int>(token & ((std::int64_t{1} << m.tile_log2) - 1));
  return {data + m.codes.at(page, tile, head), data + m.scales.at(page, tile, head),
          data + m.zeros.at(page, tile, head), slot};
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
  unrolled<Words / 4>([&](auto chunk) {
    words4 const v = load_once_16(block + (chunk * warp_lanes + lane) * 16);
    unrolled<4>([&](auto i) { words[chunk * 4 + i] = v.w[i]; });
  });
  if constexpr (Words % 4 >= 2) {
    load_once_8(block + whole * warp_lanes * 4 + lane * 8, words[whole], words[whole + 1]);
  }
  if constexpr (Words % 2 == 1) {
    words[Words - 1] = load_once_4(block + (Words - 1) * warp_lanes * 4 + lane * 4);
  }
}

/// A stored scale or zero-point as a float.
template <class Stored>
KVARTS_DEVICE float load_number(std::byte const* plane, std::int64_t index) {
  if constexpr (std::is_same_v<Stored, float>) {
    return *reinterpret_cast<float const*>(plane + index * 4);
  } else {
    auto const bits = *reinterpret_cast<std::uint16_t const*>(plane + index * 2);
    if constexpr (std::is_same_v<Stored, half>) return half_to_float(bits);
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
}

/// Scale and zero of a group, such that every code u of it stands for `scale u + zero`.
struct group_values {
  float scale;
  float zero;
};

/// The values of a group; `lowest` as in `level_values`. Uniform formats fold `lowest` into sums
/// elsewhere and get zero 0.
template <class Format>
KVARTS_DEVICE group_values load_group(tile_place const& tile, std::int64_t index, float lowest) {
  using scale_type = typename Format::scale_type;
  if constexpr (Format::level_kind == levels::zero) {
    return {load_number<scale_type>(tile.scales, index), load_number<half>(tile.zeros, index)};
  } else if constexpr (Format::level_kind == levels::hybrid) {
    // The sign bit says affine; the scale is the magnitude either way.
    float const stored = load_number<scale_type>(tile.scales, index);
    std::uint32_t const bits = std::bit_cast<std::uint32_t>(stored);
    float const scale = std::bit_cast<float>(bits & 0x7FFFFFFFu);
    bool const affine = (bits >> 31) != 0;
    return {scale, affine ? load_number<half>(tile.zeros, index) : scale * lowest};
  } else {
    return {load_number<scale_type>(tile.scales, index), 0.0f};
  }
}

}  // namespace kvarts::kernels
