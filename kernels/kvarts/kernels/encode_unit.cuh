// SPDX-License-Identifier: Apache-2.0
/// @file
/// A warp encodes the tokens of one unit of one head.
#pragma once

#include <kvarts/codec.hpp>
#include <kvarts/cuda/encode.hpp>
#include <kvarts/kernels/unit_memory.cuh>
#include <kvarts/kernels/warp_row.cuh>

#include <algorithm>
#include <cstdint>

namespace kvarts::kernels {

/// A quantizer that serves groups of a device. Others are for the host alone.
template <class Quantizer, class Group>
concept quantizes = requires(Group& g) {
  Quantizer::quantize(g);
}
|| requires(Group& g) { Quantizer::quantize(g, 1.0f); };

/// What an encode reads and writes.
template <class View>
struct encode_arguments {
  View dst{};
  source_view src{};
  transform_view transform{};
  cuda::encode_counts* counts = nullptr;
  warp_memory memory{};
};

/// A unit to encode, and which paddings its warp clears.
struct encode_place : unit_place<std::byte> {
  bool first_of_tile = false;
  bool first_of_page = false;
};

/// One warp's encoder. The caller fills in `rows()`, then calls it; tokens without a row keep their
/// codes. `GroupSlots` registers of a lane hold a group.
template <class View, int GroupSlots>
class unit_encoder {
  using codec = typename View::codec;
  using packing = typename View::packing;

 public:
  KVARTS_DEVICE explicit unit_encoder(encode_arguments<View> const& a)
      : a_(a), transform_(a.transform, a.dst.map.head_dim), memory_(memory_of_warp(a.memory)) {}

  KVARTS_DEVICE std::int32_t* rows() const { return reinterpret_cast<std::int32_t*>(memory_); }

  KVARTS_DEVICE void operator()(encode_place const& u) {
    warp_barrier();
    if (encode_unit(u)) clear_padding(u);
    warp_barrier();
  }

  KVARTS_DEVICE void refuse(std::int64_t rows) { refused_ += rows; }

  /// Adds what this warp met to the counts.
  KVARTS_DEVICE void report() const {
    std::int32_t const nonfinite = warp_sum(nonfinite_);
    if (a_.counts == nullptr || lane_index() != 0) return;
    if (nonfinite != 0) {
      atomic_add(&a_.counts->nonfinite, static_cast<unsigned long long>(nonfinite));
    }
    if (refused_ != 0) atomic_add(&a_.counts->refused, static_cast<unsigned long long>(refused_));
  }

 private:
  KVARTS_DEVICE int unit() const { return a_.memory.unit; }
  KVARTS_DEVICE int group() const { return a_.dst.map.group; }
  KVARTS_DEVICE int head_dim() const { return a_.dst.map.head_dim; }
  KVARTS_DEVICE std::uint8_t* codes() const {
    return reinterpret_cast<std::uint8_t*>(memory_ + a_.memory.codes);
  }
  KVARTS_DEVICE std::byte* image() const { return memory_ + a_.memory.image; }
  KVARTS_DEVICE float* staged() const {
    return reinterpret_cast<float*>(memory_ + a_.memory.image);
  }

  KVARTS_DEVICE bool is_full() const {
    bool missing = false;
    for (int i = lane_index(); i < unit(); i += warp_lanes) missing = missing || rows()[i] < 0;
    return !any_lane(missing);
  }

  /// False when all of its groups were refused; then nothing was written.
  KVARTS_DEVICE bool encode_unit(encode_place const& u) {
    if constexpr (codec::plain) {
      store_plain(u, rows()[0]);
      return true;
    } else {
      bool any = false;
      if (!is_full()) load_unit<codec, packing>(a_.dst.map, u, unit(), image(), codes());
      if constexpr (codec::grouped_along == axis::token) {
        for (int first = 0; first < unit(); first += group()) {
          any = encode_tokens(u, first) || any;
        }
      } else {
        for (int i = 0; i < unit(); ++i) {
          if (rows()[i] < 0) continue;
          encode_row(u, i, rows()[i]);
          any = true;
        }
      }
      if (any) store_unit<codec, packing>(a_.dst.map, u, unit(), codes(), image());
      return any;
    }
  }

  /// Loads a row and brings it to coded space; returns its length where the quantizer asks for it.
  KVARTS_DEVICE float load_coded(int head, std::int64_t row, float (&x)[row_slots]) {
    nonfinite_ += load_row(a_.src, head, row, x);
    if constexpr (codec::plain) {
      transform_.normalize(head, x, false);
      transform_.rotate(x);
      return 0.0f;
    } else {
      using quantizer = typename codec::quantizer_type;
      transform_.normalize(head, x, quantizer::clamps_rows);
      float length = 0.0f;
      if constexpr (requires(warp_group<row_slots> g) { quantizer::row_length(g); }) {
        length = quantizer::row_length(row_group(x));
      }
      transform_.rotate(x);
      return length;
    }
  }

  KVARTS_DEVICE warp_group<row_slots> row_group(float const (&x)[row_slots]) const {
    return warp_group<row_slots>(head_dim(), [&](int, int s) { return x[s]; });
  }

  KVARTS_DEVICE void store_plain(encode_place const& u, std::int64_t row) {
    float x[row_slots];
    load_coded(u.head, row, x);
    std::byte* const to = u.part(a_.dst.map.codes) + std::int64_t{u.at.slot} * head_dim() * 2;
    transform_.for_each_number([&](int d, int s) {
      store_aligned(to + 2 * d, saturate<typename codec::value_type>(x[s]).bits);
    });
  }

  /// Quantizes a group and writes its codes to `to`, `stride` apart.
  template <int Slots>
  KVARTS_DEVICE auto quantize(warp_group<Slots> g, float length, std::uint8_t* to, int stride) {
    using quantizer = typename codec::quantizer_type;
    static_assert(quantizes<quantizer, warp_group<Slots>>,
                  "this quantizer takes arrays only: the device needs quantize(group)");
    auto const p = [&] {
      if constexpr (requires { quantizer::quantize(g, length); }) {
        return quantizer::quantize(g, length);
      } else {
        return quantizer::quantize(g);
      }
    }();
    constexpr std::uint8_t mask = detail::stored_mask<quantizer, packing>;
    g.for_each_code(
        [&](int i, std::uint8_t u) { to[i * stride] = static_cast<std::uint8_t>(u ^ mask); });
    return p;
  }

  /// Writes the parameters of group `index` of a tile.
  template <class Parameters>
  KVARTS_DEVICE void store_parameters(encode_place const& u, std::int64_t index,
                                      Parameters const& p) const {
    layout const& m = a_.dst.map;
    store_bytes(u.part(m.scales) + index * codec::scale_bytes, p.scale);
    if constexpr (codec::zero_bytes != 0) {
      store_bytes(u.part(m.zeros) + index * codec::zero_bytes, p.zero);
    }
  }

  /// Token i of the unit: one row, or groups along its channels.
  KVARTS_DEVICE void encode_row(encode_place const& u, int i, std::int64_t row) {
    float x[row_slots];
    float const length = load_coded(u.head, row, x);
    std::uint8_t* const to = codes() + i * head_dim();
    std::int64_t const slot = u.at.slot + i;
    if constexpr (codec::grouped_along == axis::row) {
      auto const p = quantize(row_group(x), length, to, 1);
      if (lane_index() == 0) store_parameters(u, slot, p);
    } else {
      float* const numbers = staged();
      transform_.for_each_number([&](int d, int s) { numbers[d] = x[s]; });
      warp_barrier();
      std::int64_t index = slot * ceil_div(head_dim(), group());
      for (int first = 0; first < head_dim(); first += group(), ++index) {
        int const n = std::min(group(), head_dim() - first);
        auto const p =
            quantize(warp_group<GroupSlots>(n, [&](int k, int) { return numbers[first + k]; }),
                     length, to + first, 1);
        if (lane_index() == 0) store_parameters(u, index, p);
      }
      warp_barrier();
    }
  }

  /// A group of tokens of the unit: those from its first on, or none. Tokens behind them get zeros.
  /// False when there are none, or others.
  KVARTS_DEVICE bool encode_tokens(encode_place const& u, int first) {
    std::int32_t const* const group_rows = rows() + first;
    int present = 0;
    int last = -1;
    for (int i = lane_index(); i < group(); i += warp_lanes) {
      if (group_rows[i] < 0) continue;
      ++present;
      last = i;
    }
    present = warp_sum(present);
    if (present == 0) return false;
    if (-warp_minimum(-last) + 1 != present) {
      if (u.head == 0) refuse(present);
      return false;
    }
    int const strip = a_.memory.strip;
    for (int channel = 0; channel < head_dim(); channel += strip) {
      int const width = std::min(strip, head_dim() - channel);
      stage_tokens(u, group_rows, present, channel, width);
      encode_columns(u, first, present, channel, width);
    }
    for (int i = present * head_dim() + lane_index(); i < group() * head_dim(); i += warp_lanes) {
      codes()[first * head_dim() + i] = 0;
    }
    return true;
  }

  /// Rows of a group in coded space; of channels channel..channel + width - 1.
  KVARTS_DEVICE void stage_tokens(encode_place const& u, std::int32_t const* group_rows, int count,
                                  int channel, int width) {
    std::int32_t const nonfinite = nonfinite_;
    for (int i = 0; i < count; ++i) {
      float x[row_slots];
      load_coded(u.head, group_rows[i], x);
      float* const to = staged() + i * staged_pitch(width);
      transform_.for_each_number([&](int d, int s) {
        if (d >= channel && d < channel + width) to[d - channel] = x[s];
      });
    }
    if (channel > 0) nonfinite_ = nonfinite;  // counted with the first strip
    warp_barrier();
  }

  /// Groups of `count` tokens, one a channel. Parameters wait in the lanes for a store of the warp.
  KVARTS_DEVICE void encode_columns(encode_place const& u, int first, int count, int channel,
                                    int width) {
    float const* const numbers = staged();
    int const pitch = staged_pitch(width);
    std::uint8_t* const to = codes() + first * head_dim() + channel;
    std::int64_t const index = std::int64_t{(u.at.slot + first) / group()} * head_dim() + channel;
    typename codec::parameters_type kept{};
    for (int c = 0; c < width; ++c) {
      auto const p = quantize(
          warp_group<GroupSlots>(count, [&](int i, int) { return numbers[i * pitch + c]; }), 0.0f,
          to + c, head_dim());
      if (lane_index() == c % warp_lanes) kept = p;
      if ((c + 1) % warp_lanes != 0 && c + 1 != width) continue;
      int const mine = c - c % warp_lanes + lane_index();
      if (mine <= c) store_parameters(u, index + mine, kept);
    }
    warp_barrier();
  }

  /// Zeros in the paddings that this unit is the first to touch. Those that heads share are left to
  /// head 0.
  KVARTS_DEVICE void clear_padding(encode_place const& u) const {
    for (plane const* p : {&a_.dst.map.tile_padding, &a_.dst.map.page_padding}) {
      if (p->bytes == 0 || (p->head_stride == 0 && u.head != 0)) continue;
      if (p->tile_stride != 0 ? u.first_of_tile : u.first_of_page) {
        warp_clear(u.part(*p), p->bytes);
      }
    }
  }

  encode_arguments<View> const& a_;
  warp_transform transform_;
  std::byte* memory_;
  std::int32_t nonfinite_ = 0;
  std::int64_t refused_ = 0;
};

}  // namespace kvarts::kernels
