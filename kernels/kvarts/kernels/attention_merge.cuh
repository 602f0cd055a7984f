// SPDX-License-Identifier: Apache-2.0
/// @file
/// Partial results of attention: of warps in shared memory, of thread blocks in scratch memory, and
/// the output once all parts of a query are there.
#pragma once

#include <kvarts/kernels/attention_values.cuh>

namespace kvarts::kernels {

/// Adds a warp's softmax and sums to the piece's, to its coded or to its plain sums; one warp at a
/// time. Both kinds of sums share a maximum.
template <class Shape, bool Coded, class Sums>
KVARTS_DEVICE void add_warp(attention_shared<Shape>& shared,
                            online_softmax<Shape::tiles, Shape::block / 16> const& softmax,
                            Sums const& sums, lane_place lane) {
  unrolled<Shape::tiles>([&](auto t) {
    unrolled<2>([&](auto c) {
      int const column = 8 * t + 2 * lane.r + c;
      float const other = shared.maximum[column];
      float const own = softmax.maximum[t][c];
      float const maximum = own > other ? own : other;
      float const keep = exp2_approx(other - maximum);
      float const add = exp2_approx(own - maximum);
      float const total = shared.sum[column] * keep + softmax.sum[t][c] * add;
      float* const coded = shared.coded_sums[column];
      float* const plain = shared.plain_sums[column];
      sums.template for_each<t, c>(lane, [&](int channel, float value) {
        coded[channel] = fused(coded[channel], keep, Coded ? value * add : 0.0f);
        plain[channel] = fused(plain[channel], keep, Coded ? 0.0f : value * add);
      });
      warp_barrier();
      if (lane.g == 0) {
        shared.maximum[column] = maximum;
        shared.sum[column] = total;
      }
    });
  });
}

/// Scratch of a part: maxima, sums, then coded and plain sums of its columns.
template <class Shape>
inline constexpr int part_floats = 2 * Shape::columns + 2 * Shape::columns* Shape::value_dim;

template <class Shape>
KVARTS_DEVICE void store_part(attention_shared<Shape> const& shared, float* to) {
  constexpr int columns = Shape::columns;
  constexpr int all = columns * Shape::value_dim;
  float const* const coded = &shared.coded_sums[0][0];
  float const* const plain = &shared.plain_sums[0][0];
  for (int i = thread_here(); i < columns; i += attention_threads) {
    to[i] = shared.maximum[i];
    to[columns + i] = shared.sum[i];
  }
  for (int i = thread_here(); i < all; i += attention_threads) {
    to[2 * columns + i] = coded[i];
    to[2 * columns + all + i] = plain[i];
  }
}

/// The piece becomes the sum of `count` parts; `part(i)` points to the i-th.
template <class Shape, class Part>
KVARTS_DEVICE void add_parts(attention_shared<Shape>& shared, int count, Part&& part) {
  constexpr int columns = Shape::columns;
  constexpr int all = columns * Shape::value_dim;
  float* const coded = &shared.coded_sums[0][0];
  float* const plain = &shared.plain_sums[0][0];
  for (int i = thread_here(); i < all; i += attention_threads) {
    int const column = i / Shape::value_dim;
    float maximum = empty_maximum;
    for (int k = 0; k < count; ++k) {
      float const m = part(k)[column];
      maximum = m > maximum ? m : maximum;
    }
    float sum = 0.0f, coded_sum = 0.0f, plain_sum = 0.0f;
    for (int k = 0; k < count; ++k) {
      float const* const from = part(k);
      float const factor = exp2_approx(from[column] - maximum);
      sum = fused(from[columns + column], factor, sum);
      coded_sum = fused(from[2 * columns + i], factor, coded_sum);
      plain_sum = fused(from[2 * columns + all + i], factor, plain_sum);
    }
    coded[i] = coded_sum;
    plain[i] = plain_sum;
    if (i % Shape::value_dim == 0) {
      shared.maximum[column] = maximum;
      shared.sum[column] = sum;
    }
  }
  block_barrier();
}

/// The output and log-sum-exp of one column, by one warp.
template <class Shape>
KVARTS_DEVICE void store_column(attention_arguments const& a, attention_piece const& p,
                                attention_shared<Shape> const& shared,
                                warp_transform const& rotation, int column) {
  query_place const q = find_column<Shape>(a, p, column);
  if (!q.exists) return;
  float maximum = shared.maximum[column];
  float sum = shared.sum[column];
  float factor = 1.0f;  // of the sums of values
  if (a.request.sink_logits != nullptr) {
    float const sink = a.request.sink_logits[q.head] * log2_of_e;
    float const highest = sink > maximum ? sink : maximum;
    factor = exp2_approx(maximum - highest);
    sum = sum * factor + exp2_approx(sink - highest);
    maximum = highest;
  }
  factor = sum > 0.0f ? factor / sum : 0.0f;
  float x[row_slots] = {};
  rotation.for_each_number([&](int d, int s) { x[s] = shared.coded_sums[column][d] * factor; });
  rotation.unrotate(x);
  std::int64_t const row = query_row(a, p.sequence, q);
  dtype const type = a.request.output_type;
  auto* const to =
      static_cast<std::byte*>(a.request.output) + row * Shape::value_dim * element_size(type);
  rotation.for_each_number([&](int d, int s) {
    store_number(type, to, d, fused(shared.plain_sums[column][d], factor, x[s]));
  });
  if (lane_here() == 0 && a.request.lse != nullptr) {
    constexpr float ln_2 = 0.6931471805599453f;
    a.request.lse[row] = sum > 0.0f ? (maximum + log2_approx(sum)) * ln_2 : -__builtin_inff();
  }
}

template <class Shape>
KVARTS_DEVICE void store_outputs(attention_arguments const& a, attention_piece const& p,
                                 attention_shared<Shape> const& shared) {
  transform_view only_rotation;
  only_rotation.rotate = a.value_rotation;
  warp_transform const rotation(only_rotation, Shape::value_dim);
  KVARTS_NO_UNROLL
  for (int c = warp_here(); c < Shape::columns; c += attention_warps) {
    store_column<Shape>(a, p, shared, rotation, c);
  }
}

/// Whether this thread block is the last of those that have a part of the piece; its state is then
/// the sum of all, added in the order of the thread blocks, whoever comes last.
template <class Shape>
KVARTS_DEVICE bool merge_parts(attention_arguments const& a, attention_shared<Shape>& shared) {
  attention_piece const& p = shared.piece;
  int const first = shared.work.block_of(p.first_unit);
  int const last = shared.work.block_of(p.first_unit + p.units - 1);
  // A thread block has two parts at most: one that others began, one that it begins.
  auto const part = [&](int index) {
    std::int64_t const slot = 2 * std::int64_t{first + index} + (index == 0 ? 1 : 0);
    return a.parts + slot * part_floats<Shape>;
  };
  store_part<Shape>(shared, part(block_index() - first));
  block_barrier();
  auto const others = static_cast<std::uint32_t>(last - first);
  if (thread_here() == 0) {
    // The barriers pass on to the block what one thread's fences order.
    std::uint32_t* const counter =
        a.counters + (std::int64_t{p.sequence} * a.heads + p.head) * a.column_groups + p.group;
    thread_fence();
    shared.arrived = atomic_add(counter, 1u);
    thread_fence();
    // Zero for the next launch: adding is no write that others' additions would race with.
    if (shared.arrived == others) atomic_add(counter, 0u - (others + 1u));
  }
  block_barrier();
  if (shared.arrived != others) return false;
  add_parts<Shape>(shared, last - first + 1, part);
  return true;
}

/// Ends a piece: writes its outputs, if all of it is here or its last part has arrived.
template <class Shape>
KVARTS_DEVICE void end_piece(attention_arguments const& a, attention_shared<Shape>& shared) {
  block_barrier();
  attention_piece const& p = shared.piece;
  bool const whole = p.begin == 0 && p.end == p.units;
  if (whole || merge_parts<Shape>(a, shared)) store_outputs<Shape>(a, p, shared);
}

}  // namespace kvarts::kernels
