// SPDX-License-Identifier: Apache-2.0
/// @file
/// Launches that move codes from one packing or layout to another. As in `kvarts/cuda/encode.hpp`,
/// `kvarts::cuda` holds instances for the shipped codecs, launches never allocate or synchronize,
/// and all pointers are to device memory.
#pragma once

#include <kvarts/cuda/rows.hpp>
#include <kvarts/cuda/runtime.hpp>
#include <kvarts/fragment.hpp>
#include <kvarts/view.hpp>

namespace kvarts::cuda {

/// Why a repack is not served, or a problem without a code: `status::unsupported` is what launches
/// answer with `cudaErrorNotSupported`, anything else with `cudaErrorInvalidValue`.
template <codec_type Codec, packing From, packing To>
problem explain_repack(view<Codec, std::byte const, From> const& src,
                       view<Codec, std::byte, To> const& dst, batch const& which) noexcept;

/// Copies the codes and parameters of tokens `begins[i]..ends[i] - 1` of each sequence to the same
/// tokens of `dst`, whose pages, strides and tiles may differ: `which` describes `src`, and
/// `dst.table` (pages `[sequences, count]`) and `dst_sequence_stride` the destination. Groups are
/// of one length; a range of a codec grouped along tokens begins at a group and ends at one, or at
/// the end of what was encoded. Padding of the destination is not written.
template <codec_type Codec, packing From, packing To>
cudaError_t repack(view<Codec, std::byte const, From> src, view<Codec, std::byte, To> dst,
                   batch const& which, std::int64_t dst_sequence_stride,
                   cudaStream_t stream) noexcept;

}  // namespace kvarts::cuda
