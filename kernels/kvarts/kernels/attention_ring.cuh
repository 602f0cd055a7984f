// SPDX-License-Identifier: Apache-2.0
/// @file
/// Blocks of codes on their way into shared memory: each warp has a ring of its own, so warps never
/// wait for each other. Copied in bulk with an mbarrier from sm_90 on, 16 bytes a lane before.
#pragma once

#include <kvarts/kernels/attention_shared.cuh>
#include <kvarts/kernels/columns.cuh>

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

/// Copies a run of bytes into a stage: in bulk by one lane where there is an mbarrier, else 16
/// bytes a lane.
template <int Bytes>
KVARTS_DEVICE void copy_run(std::byte* to, std::byte const* from, std::uint64_t* arrival) {
  if (arrival != nullptr) {
    if (lane_here() == 0) bulk_copy(to, from, Bytes, arrival);
    return;
  }
  constexpr int at_once = warp_lanes * 16;
  int const lane = lane_here();
  unrolled<(Bytes + at_once - 1) / at_once>([&](auto i) {
    int const at = i * at_once + lane * 16;
    if ((i + 1) * at_once <= Bytes || at < Bytes) copy_async_16(to + at, from + at);
  });
}

/// Copies codes and parameters of the block at `token`.
template <class Format, int HeadDim, int Block>
KVARTS_DEVICE void copy_block(std::byte* to, std::uint64_t* arrival, block_map const& m,
                              int sequence, int head, std::int64_t token) {
  using staged = staged_block<Format, HeadDim, Block>;
  tile_place const tile = find_tile(m, sequence, head, token);
  copy_run<staged::code_bytes>(
      to, tile.codes + std::int64_t{tile.slot / Block} * staged::code_bytes, arrival);
  int const first = Format::along == axis::token ? (tile.slot >> m.group_log2) * HeadDim
                                                 : tile.slot * (staged::parameters / Block);
  constexpr int scale_size = sizeof(typename Format::scale_type);
  copy_run<staged::scale_bytes>(to + staged::code_bytes, tile.scales + first * scale_size, arrival);
  if constexpr (Format::has_zero) {
    copy_run<staged::zero_bytes>(to + staged::code_bytes + staged::scale_bytes,
                                 tile.zeros + first * 2, arrival);
  }
}

/// A staged block as a tile that begins with it.
template <class Format, int HeadDim, int Block>
KVARTS_DEVICE tile_place staged_tile(std::byte const* stage) {
  using staged = staged_block<Format, HeadDim, Block>;
  return {stage, stage + staged::code_bytes, stage + staged::code_bytes + staged::scale_bytes, 0};
}

/// A lane's words of a staged block.
template <int Words>
KVARTS_DEVICE void load_staged_words(std::byte const* block, lane_place place,
                                     std::uint32_t (&words)[Words]) {
  constexpr int whole = Words / 4 * 4;
  int const lane = 4 * place.g + place.r;
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

/// The ring of a warp: some blocks, of which the oldest is read while others arrive.
template <class Shape>
class block_ring {
 public:
  using key_format = typename Shape::key_format;
  using value_format = typename Shape::value_format;
  static constexpr int key_bytes = staged_block<key_format, Shape::key_dim, Shape::block>::bytes;
  static constexpr int value_bytes =
      staged_block<value_format, Shape::value_dim, Shape::block>::bytes;

  /// All warps call this once, before a barrier.
  KVARTS_DEVICE static void prepare(attention_shared<Shape>& shared, int stages) {
    if (lane_here() != 0) return;
    shared.ring_turns[warp_here()] = {};
    if (uses_bulk_copies()) {
      for (int i = 0; i < stages; ++i) mbarrier_init(shared.arrivals[warp_here()] + i, 1);
      fence_mbarrier_init();
    }
  }

  /// `rings` are those of all warps, `stages` blocks each. Goes on where the warp's last ring
  /// ended.
  KVARTS_DEVICE block_ring(std::byte* rings, attention_shared<Shape>& shared, int stages)
      : data_(rings + warp_here() * stages * stage_bytes<Shape>),
        arrivals_(shared.arrivals[warp_here()]) {
    ring_turn const turn = shared.ring_turns[warp_here()];
    fetched_ = read_ = turn.stage;
    phase_ = turn.phase;
  }

  /// All blocks were read: leaves what the warp's next ring begins with.
  KVARTS_DEVICE void finish(attention_shared<Shape>& shared) const {
    warp_barrier();
    int const thread = thread_here();
    if (thread % warp_lanes == 0) shared.ring_turns[thread / warp_lanes] = {read_, phase_};
    warp_barrier();
  }

  /// Starts the copies of a block into the next stage; a group without copies where there is no
  /// block, so that groups can be counted.
  template <bool Keys, bool Values>
  KVARTS_DEVICE void fetch(attention_arguments const& a, attention_shared<Shape> const& shared,
                           std::int32_t block, bool exists) {
    if (exists) {
      std::byte* const to = data_ + fetched_ * stage_bytes<Shape>;
      std::uint64_t* const arrival = uses_bulk_copies() ? arrivals_ + fetched_ : nullptr;
      if (arrival != nullptr && lane_here() == 0) {
        constexpr int bytes = (Keys ? key_bytes : 0) + (Values ? value_bytes : 0);
        mbarrier_expect_bytes(arrival, static_cast<std::uint32_t>(bytes));
      }
      std::int64_t const token = block * std::int64_t{Shape::block};
      int const sequence = shared.piece.sequence;
      int const head = shared.piece.head;
      if constexpr (Keys) {
        copy_block<key_format, Shape::key_dim, Shape::block>(to, arrival, a.keys, sequence, head,
                                                             token);
      }
      if constexpr (Values) {
        copy_block<value_format, Shape::value_dim, Shape::block>(to + key_bytes, arrival, a.values,
                                                                 sequence, head, token);
      }
      fetched_ = fetched_ + 1 == a.stages ? 0 : fetched_ + 1;
    }
    if (!uses_bulk_copies()) commit_copies();
  }

  /// Waits for the oldest block and returns its stage.
  KVARTS_DEVICE std::byte const* wait(int stages) {
    if (uses_bulk_copies()) {
      mbarrier_wait(arrivals_ + read_, phase_);
    } else {
      if (stages == 3) wait_copies<2>();
      if (stages == 2) wait_copies<1>();
      if (stages == 1) wait_copies<0>();
      warp_barrier();  // what other lanes copied
    }
    return data_ + read_ * stage_bytes<Shape>;
  }

  /// The oldest block was read by all lanes; its stage may be filled again.
  KVARTS_DEVICE void release(int stages) {
    warp_barrier();
    read_ = read_ + 1 == stages ? 0 : read_ + 1;
    if (read_ == 0) phase_ ^= 1u;
  }

 private:
  std::byte* data_;
  std::uint64_t* arrivals_;
  std::int32_t fetched_;
  std::int32_t read_;
  std::uint32_t phase_;
};

}  // namespace kvarts::kernels
