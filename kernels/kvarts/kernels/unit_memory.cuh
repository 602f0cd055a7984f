// SPDX-License-Identifier: Apache-2.0
/// @file
/// The shared memory in which a warp keeps the codes of a unit, and how they come and go.
#pragma once

#include <kvarts/kernels/code_units.cuh>
#include <kvarts/kernels/launch.cuh>
#include <kvarts/view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace kvarts::kernels {

/// Most warps of a block that encodes or decodes.
inline constexpr int unit_warps = 4;
inline constexpr int unit_threads = unit_warps * warp_lanes;

/// Tokens that one warp owns: whole units of the packing, whole groups of tokens.
template <codec_type Codec, packing Packing>
constexpr int unit_tokens(layout const& m) noexcept {
  if constexpr (Codec::plain) {
    return 1;
  } else {
    int const unit = code_units<Packing>::tokens({m.tile_tokens, m.head_dim, Codec::bits});
    return Codec::grouped_along == axis::token ? std::lcm(unit, m.group) : unit;
  }
}

/// What a warp has in shared memory, by offsets from its begin: `rows`, the row of each token of
/// its unit (int32, -1: none); `codes` `[unit, head_dim]`, as they are stored; then, in one place,
/// `image`, the same packed, and numbers on their way to groups, which are done before.
struct warp_memory {
  int unit = 1;
  int codes = 0;
  int image = 0;
  int strip = 0;  ///< channels of a group of tokens that are there at once
  int bytes = 0;

  constexpr int warps() const noexcept {
    if (bytes == 0) return unit_warps;
    return std::min(unit_warps, static_cast<int>(default_shared_bytes) / bytes);
  }
};

/// Distance of the tokens of a group in shared memory, in numbers: odd, so that lanes which read a
/// channel meet different banks.
constexpr int staged_pitch(int channels) noexcept { return channels | 1; }

/// Plans it for a decoder, which has no numbers there, or an encoder. Where not even one warp fits
/// into `default_shared_bytes`, `warps()` is 0.
template <codec_type Codec, packing Packing>
constexpr warp_memory plan_warp_memory(layout const& m, bool encodes) noexcept {
  constexpr std::int64_t most = default_shared_bytes;
  warp_memory w;
  w.unit = unit_tokens<Codec, Packing>(m);
  w.codes = static_cast<int>(std::min(round_up(4 * std::int64_t{w.unit}, 16), most));
  std::int64_t codes = 0;
  std::int64_t image = 0;
  std::int64_t numbers = 0;
  if constexpr (!Codec::plain) {
    codes = round_up(std::int64_t{w.unit} * m.head_dim, 16);
    image = code_units<Packing>::bytes({m.tile_tokens, m.head_dim, Codec::bits}, w.unit);
    if (encodes && Codec::grouped_along == axis::channel) numbers = m.head_dim;
    if (encodes && Codec::grouped_along == axis::token) {
      std::int64_t const room = (most - w.codes - codes) / 4 / m.group;
      w.strip = static_cast<int>(std::clamp<std::int64_t>(room - 1, 1, m.head_dim));
      numbers = std::int64_t{m.group} * staged_pitch(w.strip);
    }
  }
  w.image = static_cast<int>(std::min(w.codes + codes, most));
  w.bytes =
      static_cast<int>(std::min(round_up(w.image + std::max(image, 4 * numbers), 16), 2 * most));
  return w;
}

/// This warp's part of the block's shared memory.
KVARTS_DEVICE std::byte* memory_of_warp(warp_memory const& w) {
  return shared_memory() + warp_index() * w.bytes;
}

/// Where a warp works: a sequence's memory, a head, and the first token of a unit.
template <class Byte>
struct unit_place {
  Byte* data = nullptr;
  int head = 0;
  detail::token_location at{};

  KVARTS_DEVICE Byte* part(plane const& p) const { return data + p.at(at.page, at.tile, head); }
};

/// Reads the codes of a unit, as they are stored.
template <class Codec, class Packing, class Byte>
KVARTS_DEVICE void load_unit(layout const& m, unit_place<Byte> const& u, int tokens,
                             std::byte* image, std::uint8_t* codes) {
  using units = code_units<Packing>;
  tile_shape const shape{m.tile_tokens, m.head_dim, Codec::bits};
  warp_copy(image, u.part(m.codes) + units::offset(shape, u.at.slot),
            static_cast<int>(units::bytes(shape, tokens)));
  warp_barrier();
  units::template unpack<Codec::bits>(image, shape, tokens, codes);
  warp_barrier();
}

/// Writes the codes of a unit.
template <class Codec, class Packing>
KVARTS_DEVICE void store_unit(layout const& m, unit_place<std::byte> const& u, int tokens,
                              std::uint8_t const* codes, std::byte* image) {
  using units = code_units<Packing>;
  tile_shape const shape{m.tile_tokens, m.head_dim, Codec::bits};
  warp_barrier();
  units::template pack<Codec::bits>(image, shape, tokens, codes);
  warp_barrier();
  warp_copy(u.part(m.codes) + units::offset(shape, u.at.slot), image,
            static_cast<int>(units::bytes(shape, tokens)));
  warp_barrier();
}

}  // namespace kvarts::kernels
