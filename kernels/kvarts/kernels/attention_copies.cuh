// SPDX-License-Identifier: Apache-2.0
/// @file
/// What lies in a stage of a ring, and how a block's planes are copied there: in bulk, each by a
/// lane of its own, or 16 bytes a lane.
#pragma once

#include <kvarts/kernels/attention_work.cuh>

namespace kvarts::kernels {

/// Bytes of one side's block: its codes, then the parameters of its tokens (or groups).
template <class Format, int HeadDim, int Block>
struct staged_block {
  static constexpr int words = lane_words<Format::bits, HeadDim, Block>;
  static constexpr int code_bytes = words * warp_lanes * 4;
  static constexpr int parameters =
      Format::along == axis::token ? HeadDim : Block * channel_parts<Format, HeadDim>;
  static constexpr int scale_bytes = parameters * int{sizeof(typename Format::scale_type)};
  static constexpr int zero_bytes = Format::has_zero ? parameters * 2 : 0;
  static constexpr int bytes = code_bytes + scale_bytes + zero_bytes;
  static constexpr int planes = Format::has_zero ? 3 : 2;
  static_assert(bytes % 16 == 0 && code_bytes % Block == 0);
};

template <class Value, int HeadDim, int Block>
struct staged_block<plain_format<Value>, HeadDim, Block> {
  static constexpr int bytes = 0;
  static constexpr int planes = 0;
};

/// Bytes of a block of both sides, a multiple of 128.
template <class Shape>
inline constexpr int stage_bytes =
    (staged_block<typename Shape::key_format, Shape::key_dim, Shape::block>::bytes +
     staged_block<typename Shape::value_format, Shape::value_dim, Shape::block>::bytes + 127) /
    128 * 128;

/// A plane of one head as copies in bulk step through it.
struct alignas(16) copy_plane {
  std::byte const* data;
  std::uint32_t page_stride;
  std::uint32_t tile_stride;
  std::uint32_t tile_log2;
  std::uint32_t minus_tile_tokens;
  std::uint32_t unit_log2;  ///< of the tokens that share a unit: one, or a group
  std::uint32_t unit_bytes;
  std::uint32_t bytes;   ///< of a block
  std::uint32_t offset;  ///< in a stage
};

/// Describes the planes of a side, whose block begins at `offset` of a stage.
template <class Format, int HeadDim, int Block>
KVARTS_DEVICE void describe_planes(block_map const& m, head_planes const& head, int offset,
                                   copy_plane* to) {
  using staged = staged_block<Format, HeadDim, Block>;
  if constexpr (staged::planes > 0) {
    constexpr bool by_token = Format::along == axis::token;
    auto const describe = [&](std::byte const* data, plane_steps const& p, std::uint32_t unit_log2,
                              int unit_bytes, int bytes) {
      *to++ = {data,
               p.page_stride,
               p.tile_stride,
               m.tile_log2,
               m.minus_tile_tokens,
               unit_log2,
               static_cast<std::uint32_t>(unit_bytes),
               static_cast<std::uint32_t>(bytes),
               static_cast<std::uint32_t>(offset)};
      offset += bytes;
    };
    describe(head.codes, m.codes, 0, staged::code_bytes / Block, staged::code_bytes);
    std::uint32_t const log2 = by_token ? m.group_log2 : 0;
    constexpr int units = by_token ? 1 : Block;
    describe(head.scales, m.scales, log2, staged::scale_bytes / units, staged::scale_bytes);
    if constexpr (Format::has_zero) {
      describe(head.zeros, m.zeros, log2, staged::zero_bytes / units, staged::zero_bytes);
    }
  }
}

/// Copies a block of a plane in bulk.
KVARTS_DEVICE void copy_in_bulk(std::byte* stage, copy_plane const& p, paged_token t,
                                std::uint64_t* arrival) {
  std::uint32_t const tile = t.position >> p.tile_log2;
  std::uint32_t const slot = t.position + tile * p.minus_tile_tokens;
  std::byte const* const from = p.data + std::uint64_t{t.page} * p.page_stride +
                                std::uint64_t{tile} * p.tile_stride +
                                std::uint64_t{slot >> p.unit_log2} * p.unit_bytes;
  bulk_copy(stage + p.offset, from, p.bytes, arrival);
}

/// Copies a run of bytes into a stage, 16 bytes a lane.
template <int Bytes>
KVARTS_DEVICE void copy_run(std::byte* to, std::byte const* from, int lane) {
  constexpr int at_once = warp_lanes * 16;
  std::byte* const own_to = to + lane * 16;
  std::byte const* const own_from = from + static_cast<std::uint32_t>(lane * 16);
  unrolled<(Bytes + at_once - 1) / at_once>([&](auto i) {
    constexpr int at = i * at_once;
    if (at + at_once <= Bytes || lane * 16 < Bytes - at) {
      copy_async_16(own_to + at, own_from + at);
    }
  });
}

/// Copies codes and parameters of a block.
template <class Format, int HeadDim, int Block>
KVARTS_DEVICE void copy_block(std::byte* to, tile_place const& tile, std::uint32_t group_log2,
                              int lane) {
  using staged = staged_block<Format, HeadDim, Block>;
  // Blocks begin at multiples of their tokens.
  copy_run<staged::code_bytes>(
      to, tile.codes + std::uint64_t{tile.slot} * (staged::code_bytes / Block), lane);
  std::uint32_t const first = Format::along == axis::token
                                  ? (tile.slot >> group_log2) * HeadDim
                                  : tile.slot * (staged::parameters / Block);
  constexpr std::uint64_t scale_size = sizeof(typename Format::scale_type);
  copy_run<staged::scale_bytes>(to + staged::code_bytes, tile.scales + first * scale_size, lane);
  if constexpr (Format::has_zero) {
    copy_run<staged::zero_bytes>(to + staged::code_bytes + staged::scale_bytes,
                                 tile.zeros + std::uint64_t{first} * 2, lane);
  }
}

}  // namespace kvarts::kernels
