// SPDX-License-Identifier: Apache-2.0
/// @file
/// The launch of decode attention over codes and 16-bit windows. Declared for plain C++:
/// `kvarts::cuda` holds instances for the presets; for other pairs of codecs include
/// `kvarts/kernels/attention.cuh` in a source that nvcc compiles.
#pragma once

#include <kvarts/cache_view.hpp>
#include <kvarts/cuda/runtime.hpp>
#include <kvarts/fragment.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace kvarts::cuda {

/// Queries, where results go, and how scores become weights. Pointers are to device memory.
struct attention_request {
  void const* queries = nullptr;  ///< [sequences, query_tokens, query_heads, head_dim of K]
  dtype query_type = dtype::f16;
  void* output = nullptr;  ///< [sequences, query_tokens, query_heads, head_dim of V]
  dtype output_type = dtype::f16;
  float* lse = nullptr;  ///< natural log-sum-exp [sequences, query_tokens, query_heads], or null
  std::int32_t query_tokens = 1;  ///< the last tokens of each sequence, 1..8
  std::int32_t query_heads = 0;
  float scale = 0.0f;               ///< factor of q.k; 0 means 1 / sqrt(head_dim of K)
  float soft_cap = 0.0f;            ///< cap * tanh(score / cap); 0 means none
  std::int64_t sliding_window = 0;  ///< a query sees this many positions up to its own; 0: all
  /// Positions that count at all: parts of a sequence merge by their log-sum-exps.
  token_range positions{0, std::numeric_limits<std::int64_t>::max()};
  float const* sink_logits = nullptr;  ///< [query_heads]: a logit of no value, in every softmax
  /// Speculative trees, or null for causal queries: bit i of `tree_masks[sequence, query token]`
  /// says whether the query sees the i-th of the last `tree_tokens` (1..64) positions; it sees all
  /// before them. Sliding windows count from a query's causal position.
  std::uint64_t const* tree_masks = nullptr;
  std::int32_t tree_tokens = 0;
};

/// How a launch is spread over the device: depends on sizes alone, never on lengths.
struct attention_plan {
  std::int32_t blocks = 1;        ///< thread blocks; each takes an equal span of all work
  std::size_t scratch_bytes = 0;  ///< of device memory, for each launch that may run at a time
};

/// The part of `cache_view::sequence`'s host memory that a plan needs: sizes.
template <codec_type K, codec_type V, packing KP, packing VP>
attention_plan plan_attention(cache_view<K, V, KP, VP> const& cache, attention_request const& r,
                              int multiprocessors) noexcept;

/// Why an attention is not served, or a problem without a code. Codes must be in the fragment
/// packing of their side, tiles of K and V of the same block (32, or 16 tokens), both head_dims
/// among those compiled, both windows and plain codecs of one 16-bit type.
template <codec_type K, codec_type V, packing KP, packing VP>
problem explain_attention(cache_view<K, V, KP, VP> const& cache,
                          attention_request const& r) noexcept;

/// Attention of the last `query_tokens` tokens of every sequence: `output` = softmax(scale q.k) v
/// over sinks, codes and recent tokens, in one launch: queries are folded, coded outputs rotated
/// back, parts of a sequence merged by the last block that arrives. All pointers of the view
/// (codes, windows, `block_tables`, `lengths`, `frozen`, `transforms` and what those point to) are
/// to device memory and read while the kernel runs, so graphs replay while lengths grow. Queries
/// that see nothing give output 0 and lse -inf. Query head i reads KV head i / (query_heads /
/// heads). `scratch` has `plan.scratch_bytes` bytes, 16-byte aligned, zeros before its first use;
/// launches leave it so that it can be used again. Never allocates or synchronizes. Where a device
/// has less shared memory than the shape needs (up to 99 KB a thread block; sm_75 has 64), the
/// launch's error.
template <codec_type K, codec_type V, packing KP, packing VP>
cudaError_t attention(cache_view<K, V, KP, VP> const& cache, attention_request const& r,
                      attention_plan const& plan, void* scratch, cudaStream_t stream) noexcept;

}  // namespace kvarts::cuda
