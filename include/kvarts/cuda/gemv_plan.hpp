// SPDX-License-Identifier: Apache-2.0
/// @file
/// How products are cut into blocks of threads; a plan needs no device.
#pragma once

#include <kvarts/bits.hpp>
#include <kvarts/cuda/batch.hpp>
#include <kvarts/layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kvarts::kernels {

/// Warps of a block of threads.
inline constexpr int gemv_warps = 4;

/// Tiles of 8 query heads that a warp takes at once: two where a KV head serves more than 8 and
/// registers suffice.
constexpr int column_tiles_of(int head_dim, int shared) noexcept {
  return shared > 8 && head_dim <= 128 ? 2 : 1;
}

/// Groups of columns that the query heads of a KV head make.
inline int column_groups(layout const& m, int query_heads) noexcept {
  int const shared = query_heads / m.heads;
  return static_cast<int>(ceil_div(shared, 8 * column_tiles_of(m.head_dim, shared)));
}

}  // namespace kvarts::kernels

namespace kvarts::cuda {

/// How the tokens of p.V are split over the device, and the scratch memory that takes.
struct gemv_plan {
  std::int32_t splits = 1;
  std::size_t scratch_bytes = 0;  ///< of device memory, for each launch that may run at a time
};

/// A plan that keeps all multiprocessors busy; depends on sizes alone, not on lengths.
inline gemv_plan plan_gemv_pv(layout const& values, batch const& b, int query_heads,
                              int multiprocessors) noexcept {
  using namespace kernels;
  int const shared = values.heads > 0 ? query_heads / values.heads : 0;
  if (shared < 1 || b.sequences < 1) return {};
  std::int64_t const parts =
      std::int64_t{values.heads} * column_groups(values, query_heads) * b.sequences;
  // Four thread blocks on each multiprocessor; a part of fewer than 4 blocks of 32 tokens a warp
  // costs more to merge than to read.
  std::int64_t const wanted = ceil_div(std::int64_t{4} * multiprocessors, parts);
  std::int64_t const most = std::max<std::int64_t>(b.max_tokens / (gemv_warps * 4 * 32), 1);
  auto const splits = static_cast<std::int32_t>(std::clamp<std::int64_t>(wanted, 1, most));
  std::size_t const part = sizeof(float) * static_cast<std::size_t>(b.sequences) *
                           static_cast<std::size_t>(query_heads) *
                           static_cast<std::size_t>(values.head_dim);
  return {splits, splits > 1 ? part * static_cast<std::size_t>(splits) : 0};
}

}  // namespace kvarts::cuda
