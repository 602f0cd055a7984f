// SPDX-License-Identifier: Apache-2.0
/// @file
/// The main loop of attention: a warp's blocks of one segment, scores, softmax and values in one
/// pass.
#pragma once

#include <kvarts/kernels/attention_values.cuh>

namespace kvarts::kernels {

/// The blocks of a warp in a segment: first, first + attention_warps, ... below end.
struct segment_work {
  std::int32_t first;
  std::int32_t end;
  /// Blocks where every query sees every token, and every token is of the segment.
  std::int32_t whole_first;
  std::int32_t whole_end;
};

/// Tables of codebooks in shared memory.
struct level_tables {
  std::uint32_t const* keys;
  std::uint32_t const* values;
};

/// Minus infinity where a query of the lane's columns does not see a token.
template <class Shape, class Segment, int Halves>
KVARTS_DEVICE void hide_tokens(attention_shared<Shape> const& shared, std::int32_t block,
                               lane_place lane, float (&differences)[Halves][Shape::tiles][4]) {
  token_span const span = Segment::find(shared.parts);
  std::int64_t const first_token = block * std::int64_t{Shape::block};
  unrolled<Shape::tiles>([&](auto t) {
    unrolled<2>([&](auto column) {
      query_limits const limits = shared.limits[8 * t + 2 * lane.r + column];
      unrolled<Halves>([&](auto h) {
        unrolled<2>([&](auto i) {
          std::int64_t const token = first_token + 16 * h + 8 * i + lane.g;
          bool const seen = token >= span.begin && token < span.end && limits.sees(token);
          float& d = differences[h][t][2 * i + column];
          d = seen ? d : -__builtin_inff();
        });
      });
    });
  });
}

/// cap * tanh(x / cap), in powers of two.
KVARTS_DEVICE float soft_capped(float x, float cap) {
  float const e = exp2_approx(x / cap * (2.0f * log2_of_e));
  return cap * (1.0f - 2.0f / (e + 1.0f));
}

/// Sums of q.K^T become differences to the stale maximum.
template <int Tiles, int Halves>
KVARTS_DEVICE void subtract_maximum(score_line const (&lines)[Tiles], float soft_cap,
                                    online_softmax<Tiles, Halves> const& softmax,
                                    float (&scores)[Halves][Tiles][4]) {
  if (soft_cap > 0.0f) {
    float const cap = soft_cap * log2_of_e;
    unrolled<Halves>([&](auto h) {
      unrolled<Tiles>([&](auto t) {
        unrolled<4>([&](auto i) {
          float const x = fused(scores[h][t][i], lines[t].scale[i % 2], lines[t].offset[i % 2]);
          scores[h][t][i] = soft_capped(x, cap) - softmax.maximum[t][i % 2];
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
template <class Shape, class Segment, class Kind>
KVARTS_DEVICE void attend(attention_arguments const& a, attention_shared<Shape> const& shared,
                          level_tables tables, segment_work const& w, block_ring<Shape>& ring,
                          online_softmax<Shape::tiles, Shape::block / 16>& softmax,
                          typename Kind::values& values) {
  constexpr int halves = Shape::block / 16;
  constexpr bool stages = Kind::stages_keys || Kind::stages_values;
  lane_place const lane = place_of_lane();
  typename Kind::keys keys;
  keys.load(a, shared, lane);
  std::int32_t ahead = w.first;
  auto const fetch = [&] {
    ring.template fetch<Kind::stages_keys, Kind::stages_values>(a, shared, ahead, ahead < w.end);
    ahead += attention_warps;
  };
  if constexpr (stages) {
    for (int i = 1; i < a.stages; ++i) fetch();
  }
  KVARTS_NO_UNROLL
  for (std::int32_t block = w.first; block < w.end; block += attention_warps) {
    std::byte const* stage = nullptr;
    if constexpr (stages) {
      fetch();
      stage = ring.wait(a.stages);
    }
    bool const whole = block >= w.whole_first && block < w.whole_end;
    float scores[halves][Shape::tiles][4];
    if constexpr (Kind::stages_keys) {
      keys.multiply(stage, tables.keys, a.key_levels.lowest, lane, scores);
    } else {
      keys.multiply(a, shared.piece, Segment::find(shared.parts),
                    block * std::int64_t{Shape::block}, lane, scores);
    }
    subtract_maximum(keys.lines, a.request.soft_cap, softmax, scores);
    if (!whole) hide_tokens<Shape, Segment, halves>(shared, block, lane, scores);
    bool over = softmax.exceeds(scores);
    std::byte const* const staged_values = stages ? stage + block_ring<Shape>::key_bytes : nullptr;
    if constexpr (Kind::stages_values) {
      values.load_scales(staged_values, a.value_levels.lowest, lane.g);
      if (!whole) {
        values.hide_tokens(block * std::int64_t{Shape::block}, Segment::find(shared.parts), lane.g);
      }
      over = values.exceeds() || over;
    }
    if (any_lane(over)) {
      softmax.raise(scores, [&](auto t, float_pair factors) { values.rescale(t, factors); });
      if constexpr (Kind::stages_values) values.fit();
    }
    softmax.weigh(scores);
    if constexpr (Kind::stages_values) {
      values.add(staged_values, tables.values, a.value_levels.lowest, lane, scores);
    } else {
      values.add(a, shared.piece, Segment::find(shared.parts), block * std::int64_t{Shape::block},
                 lane, scores);
    }
    if constexpr (stages) ring.release(a.stages);
  }
}

}  // namespace kvarts::kernels
