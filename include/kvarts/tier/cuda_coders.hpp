// SPDX-License-Identifier: Apache-2.0
/// @file
/// Launches of pages as the CUDA kernels `encode` and `decode` take them, for the codecs that a
/// program chooses. Sources with `cuda_coders_of` link `kvarts::cuda`, or include
/// `kvarts/kernels/encode.cuh` and `kvarts/kernels/decode.cuh` where nvcc compiles them.
#pragma once

#include <kvarts/cuda/decode.hpp>
#include <kvarts/cuda/encode.hpp>
#include <kvarts/tier/device.hpp>

#include <array>
#include <cstdint>

namespace kvarts::tier {

/// The launches of one codec behind plain functions.
struct cuda_coder {
  codec_info info{};
  cudaError_t (*encode)(encode_launch const& l, cudaStream_t stream) = nullptr;
  cudaError_t (*decode)(decode_launch const& l, cudaStream_t stream) = nullptr;
  problem (*explain_encode)(encode_launch const& l) = nullptr;
  problem (*explain_decode)(decode_launch const& l) = nullptr;
};

namespace detail {

/// Makes the rows of a launch those of a batch: pages of a list are one sequence, pages that follow
/// one another a sequence each, without pages. Row i of the tensor is token `i % page_tokens` of
/// its page `plain_pages[i / page_tokens]`.
template <class Coded, class Plain>
cuda::rows make_rows(page_launch<Coded, Plain>& l) noexcept {
  cuda::rows r;
  std::int64_t const page_tokens = l.map.page_tokens;
  if (l.coded_pages != nullptr) {
    r.max_tokens = l.pages * page_tokens;
    r.block_tables = l.coded_pages;
    r.table_stride = l.pages;
  } else {
    r.sequences = static_cast<std::int32_t>(l.pages);
    r.max_tokens = page_tokens;
    r.sequence_stride = l.map.codes.page_stride;
    l.map.tokens = page_tokens;
    l.map.page_tokens = 0;
  }
  l.plain.map.tokens = l.pages * page_tokens;
  l.plain.table = {l.plain_pages, l.pages};
  return r;
}

}  // namespace detail

/// The launches of a codec.
template <codec_type Codec>
constexpr cuda_coder cuda_coder_of() noexcept {
  cuda_coder c;
  c.info = info_of<Codec>();
  c.encode = [](encode_launch const& launch, cudaStream_t stream) {
    encode_launch l = launch;
    cuda::rows const which = detail::make_rows(l);
    return cuda::encode(view<Codec>{l.coded, l.map, {}}, l.plain, which, l.transform, nullptr,
                        stream);
  };
  c.decode = [](decode_launch const& launch, cudaStream_t stream) {
    decode_launch l = launch;
    cuda::rows const which = detail::make_rows(l);
    return cuda::decode(view<Codec, std::byte const>{l.coded, l.map, {}}, l.plain, which,
                        l.transform, stream);
  };
  c.explain_encode = [](encode_launch const& launch) {
    encode_launch l = launch;
    cuda::rows const which = detail::make_rows(l);
    return cuda::explain_encode(view<Codec>{l.coded, l.map, {}}, l.plain, which, l.transform);
  };
  c.explain_decode = [](decode_launch const& launch) {
    decode_launch l = launch;
    cuda::rows const which = detail::make_rows(l);
    return cuda::explain_decode(view<Codec, std::byte const>{l.coded, l.map, {}}, l.plain, which,
                                l.transform);
  };
  return c;
}

/// The launches of the codecs that a geometry names.
template <codec_type... Codecs>
constexpr std::array<cuda_coder, sizeof...(Codecs)> cuda_coders_of() noexcept {
  return {cuda_coder_of<Codecs>()...};
}

}  // namespace kvarts::tier
