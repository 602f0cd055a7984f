// SPDX-License-Identifier: Apache-2.0
/// @file
/// Launches that bring codes back to plain rows: what the host's `decode` gives, bit for bit. As in
/// `kvarts/cuda/encode.hpp`, `kvarts::cuda` holds instances for the shipped codecs, launches never
/// allocate or synchronize, and all pointers are to device memory.
#pragma once

#include <kvarts/cuda/rows.hpp>
#include <kvarts/cuda/runtime.hpp>
#include <kvarts/fragment.hpp>
#include <kvarts/transform.hpp>
#include <kvarts/view.hpp>

namespace kvarts::cuda {

/// Why a decode is not served, or a problem without a code: `status::unsupported` is what launches
/// answer with `cudaErrorNotSupported`, anything else with `cudaErrorInvalidValue`.
template <codec_type Codec, packing Packing>
problem explain_decode(view<Codec, std::byte const, Packing> const& src, target_view const& dst,
                       rows const& which, transform_view const& transform = {}) noexcept;

/// Decodes any ranges of a batch, all heads, to rows of `dst` (fp16, bf16 or float32): to model
/// space with the transform that the rows were encoded with, to coded space with none. Tokens
/// outside the layout or its pages are not written.
template <codec_type Codec, packing Packing>
cudaError_t decode(view<Codec, std::byte const, Packing> src, target_view dst, rows const& which,
                   transform_view const& transform, cudaStream_t stream) noexcept;

}  // namespace kvarts::cuda
