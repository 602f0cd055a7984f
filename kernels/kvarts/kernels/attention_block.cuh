// SPDX-License-Identifier: Apache-2.0
/// @file
/// The main loop of attention: a warp's blocks of one segment, scores, softmax and values in one
/// pass.
#pragma once

#include <kvarts/kernels/attention_values.cuh>

namespace kvarts::kernels {

/// Tables of codebooks in shared memory.
struct level_tables {
  std::uint32_t const* keys;
  std::uint32_t const* values;
};

/// Minus infinity where a query of the lane's columns does not see a token.
template <class Shape, int Halves>
KVARTS_DEVICE void hide_tokens(attention_shared<Shape> const& shared, segment_work const& w,
                               std::int32_t block, lane_place lane,
                               float (&differences)[Halves][Shape::tiles][4]) {
  std::int32_t const first_token = block * Shape::block + lane.g;
  unrolled<Shape::tiles>([&](auto t) {
    unrolled<2>([&](auto column) {
      query_limits const limits = shared.limits[8 * t + 2 * lane.r + column].within(w);
      unrolled<Halves>([&](auto h) {
        unrolled<2>([&](auto i) {
          float& d = differences[h][t][2 * i + column];
          d = limits.sees(first_token + 16 * h + 8 * i) ? d : -__builtin_inff();
        });
      });
    });
  });
}

/// cap * tanh(x / cap); `slope` is 2 log2(e) / cap. Beyond the range of e^x it is cap.
KVARTS_DEVICE float soft_capped(float x, float cap, float slope) {
  float const e = exp2_approx(x * slope);
  return fused(-2.0f * cap, reciprocal_approx(e + 1.0f), cap);
}

/// Sums of q.K^T become differences to the stale maximum.
template <int Tiles, int Halves>
KVARTS_DEVICE void subtract_maximum(score_line const (&lines)[Tiles], float soft_cap,
                                    online_softmax<Tiles, Halves> const& softmax,
                                    float (&scores)[Halves][Tiles][4]) {
  if (soft_cap > 0.0f) {
    float const cap = soft_cap * log2_of_e;
    float const slope = 2.0f * reciprocal_approx(soft_cap);
    unrolled<Halves>([&](auto h) {
      unrolled<Tiles>([&](auto t) {
        unrolled<4>([&](auto i) {
          float const x = fused(scores[h][t][i], lines[t].scale[i % 2], lines[t].offset[i % 2]);
          scores[h][t][i] = soft_capped(x, cap, slope) - softmax.maximum[t][i % 2];
        });
      });
    });
    return;
  }
  unrolled<Tiles>([&](auto t) {
    unrolled<2>([&](auto column) {
      float const offset = lines[t].offset[column] - softmax.maximum[t][column];
      unrolled<Halves>([&](auto h) {
        unrolled<2>([&](auto i) {
          float& s = scores[h][t][2 * i + column];
          s = fused(s, lines[t].scale[column], offset);
        });
      });
    });
  });
}

/// The blocks of a warp in one segment; blocks of codes come through the ring.
template <class Shape, class Kind>
KVARTS_DEVICE void attend(attention_arguments const& a, attention_shared<Shape>& shared,
                          level_tables tables, segment_work const& w, std::byte* rings,
                          online_softmax<Shape::tiles, Shape::block / 16>& softmax,
                          typename Kind::values& values) {
  constexpr int halves = Shape::block / 16;
  constexpr bool stages = Kind::stages_keys || Kind::stages_values;
  block_ring<Shape> ring(rings, shared);
  constexpr int behind = block_ring<Shape>::stages - 1;
  typename Kind::keys keys;
  if constexpr (!Kind::short_run) keys.load(a, shared, place_of(lane_here()));
  std::int32_t const first = w.first_block + warp_here();
  std::int32_t const end = w.end_block;
  auto const fetch = [&](std::int32_t block, int ahead, int lane) {
    block += ahead * attention_warps;
    ring.template fetch<Kind::stages_keys, Kind::stages_values>(a, shared, block, ahead,
                                                                block < end, lane);
  };
  if constexpr (stages) {
    for (int i = 0; i < behind; ++i) fetch(first, i, lane_here());
  }
  KVARTS_NO_UNROLL
  for (std::int32_t block = first; block < end; block += attention_warps) {
    lane_place const lane = place_of(lane_here());
    std::byte const* stage = nullptr;
    if constexpr (stages) {
      fetch(block, behind, lane.lane);
      stage = ring.wait();
    }
    bool const whole = block >= w.first_whole && block < w.end_whole;
    if constexpr (Kind::short_run) keys.load(a, shared, lane);
    float scores[halves][Shape::tiles][4];
    if constexpr (Kind::stages_keys) {
      keys.multiply(shared, stage, tables.keys, a.key_levels.lowest, lane, scores);
    } else {
      keys.template multiply<Kind::sinks>(a, shared, w, block * Shape::block, lane, scores);
    }
    subtract_maximum(keys.lines, a.request.soft_cap, softmax, scores);
    std::byte const* const staged_values = stages ? stage + block_ring<Shape>::key_bytes : nullptr;
    if constexpr (Kind::stages_values) {
      values.load_scales(staged_values, a.value_levels.lowest, lane.g);
    }
    if (!whole) {
      hide_tokens<Shape>(shared, w, block, lane, scores);
      if constexpr (Kind::stages_values) values.hide_tokens(block * Shape::block, w, lane.g);
    }
    bool over = softmax.exceeds(scores);
    if constexpr (Kind::stages_values) over |= values.exceeds();
    if (any_lane(over)) {
      softmax.raise(scores, [&](auto t, float_pair factors) { values.rescale(t, factors); });
      if constexpr (Kind::stages_values) values.fit();
    }
    softmax.weigh(scores);
    if constexpr (Kind::stages_values) {
      values.add(staged_values, tables.values, a.value_levels.lowest, lane, scores);
    } else {
      values.template add<Kind::sinks>(a, shared, w, block * Shape::block, lane, scores);
    }
    if constexpr (stages) ring.release();
  }
  if constexpr (stages) ring.finish(shared);
}

}  // namespace kvarts::kernels
