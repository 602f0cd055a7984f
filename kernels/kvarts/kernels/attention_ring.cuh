// SPDX-License-Identifier: Apache-2.0
/// @file
/// Blocks of codes on their way into shared memory: each warp has a ring of its own, so warps never
/// wait for each other. Copied in bulk with an mbarrier from sm_90 on, 16 bytes a lane before.
#pragma once

#include <kvarts/kernels/attention_shared.cuh>

namespace kvarts::kernels {

/// Bytes of one side's block: its codes, then the parameters of its tokens (or groups).
template <class Format, int HeadDim, int Block>
struct staged_block {
  static constexpr int words = lane_words<Format::bits, HeadDim, Block>;
  static constexpr int code_bytes = words * warp_lanes * 4;
  static constexpr int parameters = Format::along == axis::row ? Block
                                    : Format::along == axis::channel
                                        ? Block * ((HeadDim + Format::group - 1) / Format::group)
                                        : HeadDim;
  static constexpr int scale_bytes = parameters * int{sizeof(typename Format::scale_type)};
  static constexpr int zero_bytes = Format::has_zero ? parameters * 2 : 0;
  static constexpr int bytes = code_bytes + scale_bytes + zero_bytes;
  static_assert(bytes % 16 == 0);
};

template <class Value, int HeadDim, int Block>
struct staged_block<plain_format<Value>, HeadDim, Block> {
  static constexpr int bytes = 0;
};

/// Bytes of a block of both sides, a multiple of 128.
template <class Shape>
inline constexpr int stage_bytes =
    (staged_block<typename Shape::key_format, Shape::key_dim, Shape::block>::bytes +
     staged_block<typename Shape::value_format, Shape::value_dim, Shape::block>::bytes + 127) /
    128 * 128;

/// Copies runs of bytes into a stage: all lanes 16 bytes at a time, or one lane in bulk.
struct stage_writer {
  std::uint64_t* arrival;  ///< null without bulk copies

  KVARTS_DEVICE void copy(std::byte* to, std::byte const* from, int bytes) const {
    if (arrival != nullptr) {
      if (lane_index() == 0) bulk_copy(to, from, static_cast<std::uint32_t>(bytes), arrival);
      return;
    }
    for (int i = lane_index() * 16; i < bytes; i += warp_lanes * 16) {
      copy_async_16(to + i, from + i);
    }
  }

  /// Codes and parameters of a block at `token`.
  template <class Format, int HeadDim, int Block>
  KVARTS_DEVICE void copy_block(std::byte* to, block_map const& m, int sequence, int head,
                                std::int64_t token) const {
    using staged = staged_block<Format, HeadDim, Block>;
    tile_place const tile = find_tile(m, sequence, head, token);
    copy(to, tile.codes + std::int64_t{tile.slot / Block} * staged::code_bytes, staged::code_bytes);
    std::int64_t const first = Format::along == axis::token
                                   ? std::int64_t{tile.slot / m.group} * HeadDim
                                   : std::int64_t{tile.slot} * (staged::parameters / Block);
    constexpr int scale_size = sizeof(typename Format::scale_type);
    copy(to + staged::code_bytes, tile.scales + first * scale_size, staged::scale_bytes);
    if constexpr (Format::has_zero) {
      copy(to + staged::code_bytes + staged::scale_bytes, tile.zeros + first * 2,
           staged::zero_bytes);
    }
  }
};

/// A staged block as a tile that begins with it.
template <class Format, int HeadDim, int Block>
KVARTS_DEVICE tile_place staged_tile(std::byte const* stage) {
  using staged = staged_block<Format, HeadDim, Block>;
  return {stage, stage + staged::code_bytes, stage + staged::code_bytes + staged::scale_bytes, 0};
}

/// A lane's words of a staged block.
template <int Words>
KVARTS_DEVICE void load_staged_words(std::byte const* block, int lane,
                                     std::uint32_t (&words)[Words]) {
  constexpr int whole = Words / 4 * 4;
  unrolled<Words / 4>([&](auto chunk) {
    auto const v = *reinterpret_cast<words4 const*>(block + (chunk * warp_lanes + lane) * 16);
    unrolled<4>([&](auto i) { words[chunk * 4 + i] = v.w[i]; });
  });
  if constexpr (Words % 4 >= 2) {
    auto const* const at =
        reinterpret_cast<std::uint32_t const*>(block + whole * warp_lanes * 4 + lane * 8);
    words[whole] = at[0];
    words[whole + 1] = at[1];
  }
  if constexpr (Words % 2 == 1) {
    words[Words - 1] =
        *reinterpret_cast<std::uint32_t const*>(block + (Words - 1) * warp_lanes * 4 + lane * 4);
  }
}

/// The ring of a warp: `stages` blocks, of which the oldest is read while others arrive.
template <class Shape>
class block_ring {
 public:
  using key_format = typename Shape::key_format;
  using value_format = typename Shape::value_format;
  static constexpr int key_bytes = staged_block<key_format, Shape::key_dim, Shape::block>::bytes;

  KVARTS_DEVICE block_ring(std::byte* rings, attention_shared<Shape>& shared, int stages)
      : data_(rings + warp_index() * stages * stage_bytes<Shape>),
        arrivals_(uses_bulk_copies() ? shared.arrivals[warp_index()] : nullptr),
        stages_(stages) {
    if (arrivals_ != nullptr && lane_index() == 0) {
      for (int i = 0; i < stages; ++i) mbarrier_init(arrivals_ + i, 1);
      fence_mbarrier_init();
    }
    block_barrier();
  }

  KVARTS_DEVICE int stages() const { return stages_; }

  /// Starts the copies of the block at `token` into the next stage; a group without copies where
  /// there is no block, so that groups can be counted.
  template <bool Keys, bool Values>
  KVARTS_DEVICE void fetch(attention_arguments const& a, int sequence, int head, std::int64_t token,
                           bool exists) {
    if (exists) {
      constexpr int value_bytes = staged_block<value_format, Shape::value_dim, Shape::block>::bytes;
      std::byte* const to = data_ + fetched_ * stage_bytes<Shape>;
      stage_writer const writer{arrivals_ == nullptr ? nullptr : arrivals_ + fetched_};
      if (arrivals_ != nullptr && lane_index() == 0) {
        mbarrier_expect_bytes(
            arrivals_ + fetched_,
            static_cast<std::uint32_t>((Keys ? key_bytes : 0) + (Values ? value_bytes : 0)));
      }
      if constexpr (Keys) {
        writer.template copy_block<key_format, Shape::key_dim, Shape::block>(to, a.keys, sequence,
                                                                             head, token);
      }
      if constexpr (Values) {
        writer.template copy_block<value_format, Shape::value_dim, Shape::block>(
            to + key_bytes, a.values, sequence, head, token);
      }
      fetched_ = fetched_ + 1 == stages_ ? 0 : fetched_ + 1;
    }
    if (arrivals_ == nullptr) commit_copies();
  }

  /// Waits for the oldest block and returns its stage.
  KVARTS_DEVICE std::byte const* wait() {
    if (arrivals_ != nullptr) {
      mbarrier_wait(arrivals_ + read_, phase_);
    } else if (stages_ == 3) {
      wait_copies<2>();
    } else if (stages_ == 2) {
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    warp_barrier();  // what other lanes copied
    return data_ + read_ * stage_bytes<Shape>;
  }

  /// The oldest block was read by all lanes; its stage may be filled again.
  KVARTS_DEVICE void release() {
    warp_barrier();
    read_ = read_ + 1 == stages_ ? 0 : read_ + 1;
    if (read_ == 0) phase_ ^= 1u;
  }

 private:
  std::byte* data_;
  std::uint64_t* arrivals_;
  int stages_;
  int fetched_ = 0;
  int read_ = 0;
  std::uint32_t phase_ = 0;
};

}  // namespace kvarts::kernels
