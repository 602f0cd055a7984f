// SPDX-License-Identifier: Apache-2.0
/// @file
/// Every shipped codec in every packing, on the host and on the device, behind plain functions, so
/// that a test of all is a loop and each kernel is compiled once.
#pragma once

#include <kvarts/cuda/encode.hpp>
#include <kvarts/encode.hpp>
#include <kvarts/make_layout.hpp>

#include <cstddef>
#include <string>
#include <support/any_codec.hpp>
#include <vector>

namespace kvarts::test {

struct device_codec {
  codec_info info;
  std::string packing;
  /// Null where a layout does not exist.
  layout (*row_records)(int heads, int head_dim, std::int64_t tokens, int alignment, int group);
  layout (*head_tiles)(int heads, int head_dim, std::int64_t tokens, tile_options o);
  layout (*pages)(int heads, int head_dim, std::int64_t pages, int page_tokens, tile_options o);
  encode_result (*host_encode)(coded<std::byte> dst, source_view src, token_range tokens,
                               transform_view const& t);
  status (*host_decode)(coded<std::byte const> src, target_view dst, token_range tokens,
                        transform_view const& t);
  cudaError_t (*encode)(coded<std::byte> dst, source_view src, cuda::rows const& which,
                        transform_view const& t, cuda::encode_counts* counts);
  cudaError_t (*append)(coded<std::byte> dst, source_view src, std::int64_t const* slots,
                        transform_view const& t, cuda::encode_counts* counts);
  cudaError_t (*decode)(coded<std::byte const> src, target_view dst, cuda::rows const& which,
                        transform_view const& t);
  problem (*explain)(layout const& m);

  std::string name() const {
    std::string text(std::string_view(info.name));
    if (info.grouped_along != axis::row) {
      text.append(" along ").append(to_string(info.grouped_along));
    }
    return text.append(", ").append(packing);
  }
  bool along_tokens() const { return info.grouped_along == axis::token; }
  bool is_fragment() const { return packing != "linear"; }
};

/// All of them. Fragments are those of keys, and of values for groups of tokens; a few codecs come
/// in both.
std::vector<device_codec> const& device_codecs();

}  // namespace kvarts::test
