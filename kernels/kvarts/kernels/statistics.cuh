// SPDX-License-Identifier: Apache-2.0
/// @file
/// Definitions of the launches in `kvarts/cuda/statistics.hpp`. The only header that includes CUB;
/// for nvcc alone.
#pragma once

#include <kvarts/cuda/statistics.hpp>
#include <kvarts/kernels/explain.cuh>
#include <kvarts/kernels/launch.cuh>
#include <kvarts/kernels/warp_row.cuh>
#include <kvarts/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

namespace kvarts::kernels {

/// The numbers of a tensor channel after channel: segment `h * head_dim + d` has those of head h,
/// channel d, from token `skip` on.
struct channel_numbers {
  source_view src{};
  std::int64_t skip = 0;

  constexpr std::int64_t tokens() const noexcept {
    return src.map.tokens > skip ? src.map.tokens - skip : 0;
  }
  constexpr int segments() const noexcept { return src.map.heads * src.map.head_dim; }

  KVARTS_DEVICE float at(std::int64_t segment, std::int64_t i) const {
    auto const s = static_cast<int>(segment);
    std::byte const* const row = src.row(s / src.map.head_dim, skip + i);
    float const x = load_number(src.type, row, s % src.map.head_dim);
    return detail::make_finite(x, detail::largest_of(src.type));
  }
};

/// CUB sees one run of indices: a segment's are those from `segment << segment_shift` on, which
/// are taken apart without a division.
inline constexpr int segment_shift = 32;
inline constexpr std::int64_t segment_mask = (std::int64_t{1} << segment_shift) - 1;

/// Magnitude bits of a number; they order as the magnitudes do.
struct magnitude_at {
  channel_numbers numbers{};
  KVARTS_DEVICE std::int32_t operator()(std::int64_t i) const {
    return detail::magnitude_bits(numbers.at(i >> segment_shift, i & segment_mask));
  }
};

/// Sums of a segment, of numbers less the segment's first one (where `about_first`): exact enough
/// when a center is large against the spread.
struct moments {
  double sum = 0.0;
  double squares = 0.0;
};

struct moments_at {
  channel_numbers numbers{};
  bool about_first = false;
  KVARTS_DEVICE moments operator()(std::int64_t i) const {
    std::int64_t const segment = i >> segment_shift;
    double const shift = about_first ? double{numbers.at(segment, 0)} : 0.0;
    double const x = double{numbers.at(segment, i & segment_mask)} - shift;
    return {x, x * x};
  }
};

struct add_moments {
  KVARTS_DEVICE moments operator()(moments const& a, moments const& b) const {
    return {a.sum + b.sum, a.squares + b.squares};
  }
};

struct larger {
  KVARTS_DEVICE std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return a < b ? b : a;
  }
};

/// Where a segment begins, or ends.
struct segment_bound {
  std::int64_t length = 0;
  KVARTS_HOST_DEVICE std::int64_t operator()(std::int64_t segment) const {
    return (segment << segment_shift) + length;
  }
};

/// Reduces each segment of `number` to `result[segment]`.
template <class Number, class T, class Operation>
cudaError_t reduce_segments(void* scratch, std::size_t& bytes, Number const& number, T* result,
                            Operation operation, cudaStream_t stream) {
  thrust::counting_iterator<std::int64_t> const index(0);
  std::int64_t const length = number.numbers.tokens();
  return cub::DeviceSegmentedReduce::Reduce(
      scratch, bytes, thrust::make_transform_iterator(index, number), result,
      number.numbers.segments(), thrust::make_transform_iterator(index, segment_bound{0}),
      thrust::make_transform_iterator(index, segment_bound{length}), operation, T{}, stream);
}

KVARTS_KERNEL(256, 1) finish_norms(float* norm, int channels) {
  int const i = block_index() * block_threads() + thread_index();
  if (i >= channels) return;
  norm[i] = norm[i] > 0.0f ? detail::square_root(norm[i]) : 1.0f;
}

/// `reads` are the sums of all query heads; `queries` is their view, without tokens if there are
/// none.
KVARTS_KERNEL(256, 1)
finish_calibration(channel_numbers keys, channel_numbers queries, moments const* spread,
                   moments const* reads, float* center, float* norm) {
  int const i = block_index() * block_threads() + thread_index();
  if (i >= keys.segments()) return;
  auto const n = static_cast<double>(keys.tokens());
  double const mean = spread[i].sum / n;
  double const variance = spread[i].squares / n - mean * mean;
  double const deviation = variance > 0.0 ? sqrt(variance) : 0.0;
  double rms = 1.0;
  if (queries.tokens() > 0) {
    int const head_dim = keys.src.map.head_dim;
    int const share = queries.src.map.heads / keys.src.map.heads;
    double squares = 0.0;
    for (int h = i / head_dim * share; h < (i / head_dim + 1) * share; ++h) {
      squares += reads[h * head_dim + i % head_dim].squares;
    }
    rms = sqrt(squares / (static_cast<double>(queries.tokens()) * share));
  }
  center[i] = static_cast<float>(double{keys.at(i, 0)} + mean);
  auto const value = static_cast<float>(sqrt(deviation / rms));
  bool const usable = deviation > 0.0 && rms > 0.0 && detail::is_finite(value) && value > 0.0f;
  norm[i] = usable ? value : 1.0f;
}

/// A thread for each channel.
inline launch_shape shape_for_channels(int channels) noexcept {
  return {.blocks = static_cast<unsigned>(ceil_div(channels, 256)), .threads = 256};
}

/// Rows that kernels can read.
inline problem explain_numbers(source_view const& v) noexcept {
  if (auto const p = check_tensor(v.map, v.type)) return p;
  return explain_alignment(v.map.codes, v.data, {}, element_size(v.type));
}

}  // namespace kvarts::kernels

namespace kvarts::cuda {

inline cudaError_t innerq_norm(void* scratch, std::size_t& scratch_bytes, source_view keys,
                               float* norm, cudaStream_t stream) noexcept {
  using namespace kernels;
  if (auto const p = explain_numbers(keys)) return error_of(p);
  magnitude_at const number{{keys}};
  auto* const bits = reinterpret_cast<std::int32_t*>(norm);
  auto const code = reduce_segments(scratch, scratch_bytes, number, bits, larger{}, stream);
  if (code != cudaSuccess || scratch == nullptr) return code;
  int const channels = number.numbers.segments();
  return launch(finish_norms, shape_for_channels(channels), stream, norm, channels);
}

inline cudaError_t calibrate(void* scratch, std::size_t& scratch_bytes, source_view keys,
                             source_view queries, std::int64_t skip, float* center, float* norm,
                             cudaStream_t stream) noexcept {
  using namespace kernels;
  moments_at const spread{{keys, skip}, true};
  moments_at const reads{{queries, 0}, false};
  bool const has_queries = reads.numbers.tokens() > 0;
  if (auto const p = explain_numbers(keys)) return error_of(p);
  if (has_queries) {
    if (auto const p = explain_numbers(queries)) return error_of(p);
    if (queries.map.head_dim != keys.map.head_dim) return cudaErrorInvalidValue;
    if (queries.map.heads % keys.map.heads != 0) return cudaErrorInvalidValue;
  }
  if (skip < 0 || spread.numbers.tokens() == 0) return cudaErrorInvalidValue;

  // The scratch memory: sums of keys, sums of queries, the room of CUB.
  int const key_sums = spread.numbers.segments();
  int const all_sums = key_sums + (has_queries ? reads.numbers.segments() : 0);
  std::size_t const sums_bytes = static_cast<std::size_t>(all_sums) * sizeof(moments);
  if (scratch != nullptr && scratch_bytes < sums_bytes) return cudaErrorInvalidValue;
  auto* const sums = static_cast<moments*>(scratch);
  void* const room = scratch != nullptr ? sums + all_sums : nullptr;
  std::size_t room_bytes = scratch != nullptr ? scratch_bytes - sums_bytes : 0;
  std::size_t query_bytes = room_bytes;
  auto code = reduce_segments(room, room_bytes, spread, sums, add_moments{}, stream);
  if (code == cudaSuccess && has_queries) {
    moments* const read_sums = scratch != nullptr ? sums + key_sums : nullptr;
    code = reduce_segments(room, query_bytes, reads, read_sums, add_moments{}, stream);
  }
  if (code != cudaSuccess) return code;
  if (scratch == nullptr) {
    scratch_bytes = sums_bytes + std::max(room_bytes, query_bytes);
    return cudaSuccess;
  }
  return launch(finish_calibration, shape_for_channels(key_sums), stream, spread.numbers,
                reads.numbers, static_cast<moments const*>(sums),
                static_cast<moments const*>(sums + key_sums), center, norm);
}

}  // namespace kvarts::cuda
