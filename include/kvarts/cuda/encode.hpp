// SPDX-License-Identifier: Apache-2.0
/// @file
/// Launches that code rows on the device: the bytes are those of the host's `encode`. Declared for
/// plain C++: `kvarts::cuda` holds instances for the shipped codecs; for others include
/// `kvarts/kernels/encode.cuh` in a source that nvcc compiles.
///
/// Launches enqueue on the caller's stream, never allocate or synchronize, and read lengths and
/// tables from device memory, so they can be captured in a graph. All pointers in views, transforms
/// and rows are to device memory; rows of plain tensors lie at multiples of their element's size.
#pragma once

#include <kvarts/cuda/rows.hpp>
#include <kvarts/cuda/runtime.hpp>
#include <kvarts/fragment.hpp>
#include <kvarts/transform.hpp>
#include <kvarts/view.hpp>

#include <cstdint>

namespace kvarts::cuda {

/// What launches count, in device memory; they add to it.
struct encode_counts {
  unsigned long long nonfinite = 0;  ///< NaN and infinities in the input, each counted once
  /// Rows that were not coded: their position is outside the layout, its page outside the pool, or
  /// their group of tokens lacks its first ones.
  unsigned long long refused = 0;
};

/// Why an encode is not served, or a problem without a code: `status::unsupported` is what launches
/// answer with `cudaErrorNotSupported`, anything else with `cudaErrorInvalidValue`. head_dim is at
/// most 256; groups are too.
template <codec_type Codec, packing Packing>
problem explain_encode(view<Codec, std::byte, Packing> const& dst, source_view const& src,
                       rows const& which, transform_view const& transform = {}) noexcept;

/// Encodes the rows of a batch, all heads. As the host's `encode` for each sequence: rows pass
/// through the transform, padding of touched tiles is cleared, a sequence of a codec grouped along
/// tokens begins at a group (else all of its rows are refused), and a group that the last token
/// leaves partial cannot be appended to. `counts` may be null. Center and norm are not checked.
template <codec_type Codec, packing Packing>
cudaError_t encode(view<Codec, std::byte, Packing> dst, source_view src, rows const& which,
                   transform_view const& transform, encode_counts* counts,
                   cudaStream_t stream) noexcept;

/// Why an append is not served; as `explain_encode`.
template <codec_type Codec, packing Packing>
problem explain_append(view<Codec, std::byte, Packing> const& dst, source_view const& src,
                       transform_view const& transform = {}) noexcept;

/// Encodes row i of `src` to slot `slot_mapping[i]` of `dst`, all heads: `page * page_tokens +
/// offset`, without pages the token; -1 skips the row. Slots come in any order, no two alike. The
/// tokens of a group of a codec grouped along tokens come in one call, from the group's first on.
/// Padding is cleared with a tile's (a page's) first tokens.
template <codec_type Codec, packing Packing>
cudaError_t append(view<Codec, std::byte, Packing> dst, source_view src,
                   std::int64_t const* slot_mapping, transform_view const& transform,
                   encode_counts* counts, cudaStream_t stream) noexcept;

}  // namespace kvarts::cuda
