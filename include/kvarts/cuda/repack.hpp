// SPDX-License-Identifier: Apache-2.0
/// @file
/// Launches that move codes from one packing or layout to another. As in `kvarts/cuda/encode.hpp`,
/// `kvarts::cuda` holds instances for the shipped codecs, launches never allocate or synchronize,
/// and all pointers are to device memory.
#pragma once

#include <kvarts/cuda/batch.hpp>
#include <kvarts/cuda/runtime.hpp>
#include <kvarts/fragment.hpp>
#include <kvarts/view.hpp>

namespace kvarts::cuda {

/// Why a repack is not served, or a problem without a code: `status::unsupported` is what launches
/// answer with `cudaErrorNotSupported`, anything else with `cudaErrorInvalidValue`.
template <codec_type Codec, packing From, packing To>
problem explain_repack(view<Codec, std::byte const, From> const& src, batch const& from,
                       view<Codec, std::byte, To> const& dst, batch const& to) noexcept;

/// Copies codes and parameters of each sequence's tokens `from.begins[i]..from.ends[i] - 1` (all
/// `from.max_tokens` from 0 on where these are null) to the same tokens of `dst`. Tiles, pages and
/// strides may differ: `from` says where the sequences lie in `src`, `to` where in `dst`; of `to`
/// nothing else is read. Group lengths are alike, and ranges of a codec grouped along tokens begin
/// at a group. Other tokens' codes are kept; padding is not written. `src` may not overlap `dst`.
template <codec_type Codec, packing From, packing To>
cudaError_t repack(view<Codec, std::byte const, From> src, batch const& from,
                   view<Codec, std::byte, To> dst, batch const& to, cudaStream_t stream) noexcept;

}  // namespace kvarts::cuda
