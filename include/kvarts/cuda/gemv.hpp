// SPDX-License-Identifier: Apache-2.0
/// @file
/// Launches of the products on codes: q.K^T and p.V for one token of queries a sequence, with GQA,
/// batches and pages. Declared for plain C++: `kvarts::cuda` holds instances for the shipped
/// codecs; for others include `kvarts/kernels/gemv.cuh` in a source that nvcc compiles.
///
/// Launches enqueue on the caller's stream, never allocate or synchronize, and read lengths from
/// device memory, so they can be captured in a graph. All pointers are to device memory.
#pragma once

#include <kvarts/cuda/batch.hpp>
#include <kvarts/cuda/gemv_plan.hpp>
#include <kvarts/cuda/runtime.hpp>
#include <kvarts/fragment.hpp>
#include <kvarts/view.hpp>

#include <cstddef>

namespace kvarts::cuda {

/// Why a product is not served, or a problem without a code. Codes are read in the packing
/// `fragment<operand::keys>` or `fragment<operand::values>`, plain 16-bit values as rows; head_dim
/// and tiles must be among those that are compiled (all of 64, 80, 96, 128, 192 and 256, tiles of
/// 16 or whole 32 tokens), groups along channels 16, 32, 64 or 128 long, groups along tokens a
/// multiple of 32 (of 16 in tiles of 16). `status::unsupported` is what launches answer with
/// `cudaErrorNotSupported`, anything else with `cudaErrorInvalidValue`.
template <codec_type Codec, packing Packing>
problem explain_gemv(operand side, view<Codec, std::byte const, Packing> const& codes,
                     batch const& b, int query_heads) noexcept;

/// Scores of folded queries with coded keys: for sequence i, query head h and token t
/// `scores[i, h, t - begins[i]]` = queries[i, h] . k^[t] + bias[i, h]. `queries` is float32
/// `[sequences, query_heads, head_dim]` from `fold_query`, `bias` `[sequences, query_heads]` or
/// null, `scores` `[sequences, query_heads, max_tokens]`; tokens outside a span are not written.
/// Queries are rounded to halfs (each head times a power of two): the error of a score is at most
/// `2^-11 sum |q_d k^_d|` plus head_dim 2^-20 of the largest |q_d k^_d|; twice that for codebooks,
/// and for codecs with zero-points, where k^_d is the largest number of its group.
template <codec_type Codec, packing Packing>
cudaError_t gemv_qk(view<Codec, std::byte const, Packing> keys, batch const& b, int query_heads,
                    float const* queries, float const* bias, float* scores,
                    cudaStream_t stream) noexcept;

/// Weighted sums of coded values, in coded space: `output[i, h]` = sum over t of
/// `p[i, h, t - begins[i]]` v^[t], `p` `[sequences, query_heads, max_tokens]`, `output` float32
/// `[sequences, query_heads, head_dim]`, all of it overwritten (zeros for empty sequences);
/// `unrotate` it once per query head. `scratch` has `plan.scratch_bytes` bytes of any content,
/// 16-byte aligned. Weights (times a token's scale, where the codec has one) are rounded to halfs
/// relative to the largest of their query head: the error of an output is at most
/// `2^-11 sum |p_t v^_td|` plus 2^-20 of the largest |p_t v^_td| for each token; for codebooks and
/// zero-points as for scores.
template <codec_type Codec, packing Packing>
cudaError_t gemv_pv(view<Codec, std::byte const, Packing> values, batch const& b, int query_heads,
                    float const* p, float* output, gemv_plan const& plan, void* scratch,
                    cudaStream_t stream) noexcept;

}  // namespace kvarts::cuda
