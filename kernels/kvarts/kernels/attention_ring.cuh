// SPDX-License-Identifier: Apache-2.0
/// @file
/// Blocks of codes on their way into shared memory: each warp has a ring of its own, so warps never
/// wait for each other. Copied in bulk with an mbarrier from sm_90 on, 16 bytes a lane before.
#pragma once

#include <kvarts/kernels/attention_shared.cuh>

namespace kvarts::kernels {

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

/// Dynamic shared memory of a thread block with this many stages.
template <class Shape>
constexpr std::size_t attention_shared_bytes(int stages) noexcept {
  return sizeof(attention_shared<Shape>) + table_bytes<typename Shape::key_format> +
         table_bytes<typename Shape::value_format> +
         static_cast<std::size_t>(attention_warps * stages * stage_bytes<Shape>);
}

/// Blocks of a warp under way: three where four thread blocks fit beside each other into the least
/// shared memory of a multiprocessor that has asynchronous copies; two within 96 KB.
template <class Shape>
inline constexpr int ring_stages = [] {
  if (stage_bytes<Shape> == 0) return 1;
  if (attention_shared_bytes<Shape>(3) <= std::size_t{40} * 1024) return 3;
  return attention_shared_bytes<Shape>(2) <= std::size_t{96} * 1024 ? 2 : 1;
}();

/// The ring of a warp: some blocks, of which the oldest is read while others arrive.
template <class Shape>
class block_ring {
 public:
  using key_format = typename Shape::key_format;
  using value_format = typename Shape::value_format;
  static constexpr int stages = ring_stages<Shape>;
  using keys = staged_block<key_format, Shape::key_dim, Shape::block>;
  using values = staged_block<value_format, Shape::value_dim, Shape::block>;
  static constexpr int key_bytes = keys::bytes;
  static constexpr int value_bytes = values::bytes;

  /// All warps call this once, before a barrier.
  KVARTS_DEVICE static void prepare(attention_shared<Shape>& shared) {
    if (lane_here() != 0) return;
    int const warp = warp_here();
    shared.ring_turns[warp] = {};
    if (uses_bulk_copies()) {
      for (int i = 0; i < stages; ++i) mbarrier_init(shared.arrivals[warp] + i, 1);
      fence_mbarrier_init();
    }
  }

  /// `rings` are those of all warps. Goes on where the warp's last ring ended.
  KVARTS_DEVICE block_ring(std::byte* rings, attention_shared<Shape>& shared)
      : data_(rings + warp_here() * (stages * stage_bytes<Shape>)),
        arrivals_(shared.arrivals[warp_here()]),
        turn_(shared.ring_turns[warp_here()]) {}

  /// All blocks were read: leaves what the warp's next ring begins with.
  KVARTS_DEVICE void finish(attention_shared<Shape>& shared) const {
    warp_barrier();
    if (lane_here() == 0) shared.ring_turns[warp_here()] = turn_;
    warp_barrier();
  }

  /// Starts the copies of a block into the stage `ahead` (0 .. stages - 1) behind the oldest; a
  /// group without copies where there is no block, so that groups can be counted.
  template <bool Keys, bool Values>
  KVARTS_DEVICE void fetch(attention_arguments const& a, attention_shared<Shape> const& shared,
                           std::int32_t block, int ahead, bool exists, int lane) {
    if (exists) {
      int const next = turn_.stage + ahead;
      int const stage = next < stages ? next : next - stages;
      std::byte* const to = data_ + stage * stage_bytes<Shape>;
      auto const first = static_cast<std::uint32_t>(block) * Shape::block;
      if (uses_bulk_copies()) {
        copy_planes<Keys, Values>(to, arrivals_ + stage, a, shared, first, lane);
      } else {
        copy_tiles<Keys, Values>(to, a, shared, first, lane);
      }
    }
    if (!uses_bulk_copies()) commit_copies();
  }

  /// Waits for the oldest block and returns its stage.
  KVARTS_DEVICE std::byte const* wait() {
    if (uses_bulk_copies()) {
      mbarrier_wait(arrivals_ + turn_.stage, turn_.phase);
    } else {
      wait_copies<stages - 1>();
      warp_barrier();  // what other lanes copied
    }
    return data_ + turn_.stage * stage_bytes<Shape>;
  }

  /// The oldest block was read by all lanes; its stage may be filled again.
  KVARTS_DEVICE void release() {
    warp_barrier();
    turn_.stage = turn_.stage + 1 == stages ? 0 : turn_.stage + 1;
    if (uses_bulk_copies() && turn_.stage == 0) turn_.phase ^= 1u;
  }

 private:
  template <bool Keys, bool Values>
  KVARTS_DEVICE static void copy_planes(std::byte* to, std::uint64_t* arrival,
                                        attention_arguments const& a,
                                        attention_shared<Shape> const& shared,
                                        std::uint32_t first_token, int lane) {
    constexpr int begin = Keys ? 0 : keys::planes;
    constexpr int end = keys::planes + (Values ? values::planes : 0);
    constexpr int bytes = (Keys ? key_bytes : 0) + (Values ? value_bytes : 0);
    if (lane >= end - begin) return;
    if (lane == 0) mbarrier_expect_bytes(arrival, std::uint32_t{bytes});
    copy_in_bulk(to, shared.planes[begin + lane], find_page(a.keys, shared.table, first_token),
                 arrival);
  }

  template <bool Keys, bool Values>
  KVARTS_DEVICE static void copy_tiles(std::byte* to, attention_arguments const& a,
                                       attention_shared<Shape> const& shared,
                                       std::uint32_t first_token, int lane) {
    paged_token const token = find_page(a.keys, shared.table, first_token);
    if constexpr (Keys) {
      copy_block<key_format, Shape::key_dim, Shape::block>(
          to, find_tile(a.keys, shared.key_planes, token), a.keys.group_log2, lane);
    }
    if constexpr (Values) {
      copy_block<value_format, Shape::value_dim, Shape::block>(
          to + key_bytes, find_tile(a.values, shared.value_planes, token), a.values.group_log2,
          lane);
    }
  }

  std::byte* data_;
  std::uint64_t* arrivals_;
  ring_turn turn_;
};

}  // namespace kvarts::kernels
