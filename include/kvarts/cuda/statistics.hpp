// SPDX-License-Identifier: Apache-2.0
/// @file
/// Centers and norms of key transforms, from keys and queries in device memory: what `innerq_norm`
/// and `calibrate` compute on the host, to 1e-6 (norms by InnerQ's rule: the same bits).
///
/// Launches enqueue on the caller's stream and never allocate or synchronize. Called with a null
/// `scratch`, they only set `scratch_bytes` to the device memory that they need.
#pragma once

#include <kvarts/cuda/runtime.hpp>
#include <kvarts/view.hpp>

#include <cstddef>
#include <cstdint>

namespace kvarts::cuda {

/// InnerQ's norm of keys, `norm` `[heads, head_dim]`: sqrt of the largest magnitude of each
/// channel over all tokens of `keys`, 1 for an all-zero channel.
cudaError_t innerq_norm(void* scratch, std::size_t& scratch_bytes, source_view keys, float* norm,
                        cudaStream_t stream) noexcept;

/// `center` and `norm` `[heads, head_dim]` of keys from token `skip` on and of the queries that
/// read them (query head i reads KV head i / (query heads / heads); a view without tokens: none).
cudaError_t calibrate(void* scratch, std::size_t& scratch_bytes, source_view keys,
                      source_view queries, std::int64_t skip, float* center, float* norm,
                      cudaStream_t stream) noexcept;

}  // namespace kvarts::cuda
