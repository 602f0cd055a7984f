// SPDX-License-Identifier: Apache-2.0
/// @file
/// Every shipped codec behind plain functions, so that a test of all codecs is a loop.
#pragma once

#include "support/rows.hpp"

#include <kvarts/codec.hpp>
#include <kvarts/encode.hpp>
#include <kvarts/make_layout.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace kvarts::test {

/// Coded memory: what a view needs beside its codec.
template <class Byte>
struct coded {
  Byte* data = nullptr;
  layout map{};
  block_table table{};
};

struct any_codec {
  codec_info info;
  /// Null for codecs grouped along tokens.
  layout (*row_records)(int heads, int head_dim, std::int64_t tokens, int alignment, int group);
  layout (*head_tiles)(int heads, int head_dim, std::int64_t tokens, tile_options o);
  layout (*pages)(int heads, int head_dim, std::int64_t pages, int page_tokens, tile_options o);
  problem (*check)(layout const& m);
  encode_result (*encode)(coded<std::byte> dst, source_view src, token_range tokens,
                          transform_view const& t);
  status (*decode)(coded<std::byte const> src, target_view dst, token_range tokens,
                   transform_view const& t);
  status (*gemv_qk)(coded<std::byte const> keys, token_range tokens, int query_heads,
                    float const* queries, double const* bias, float* scores);
  status (*gemv_pv)(coded<std::byte const> values, token_range tokens, int query_heads,
                    float const* p, float* output);

  std::string name() const {
    std::string text(std::string_view(info.name));
    if (info.grouped_along != axis::row)
      text.append(" along ").append(to_string(info.grouped_along));
    return text;
  }
  bool along_tokens() const { return info.grouped_along == axis::token; }
};

/// Every shipped codec, once per axis (all_codecs.cpp).
std::vector<any_codec> const& all_codecs();

/// All tokens of `src` in new memory of the layout, which held `before`.
inline std::vector<std::byte> encoded(any_codec const& c, layout const& m, source_view src,
                                      transform_view const& t = {},
                                      std::byte before = std::byte{0}) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()), before);
  auto const result = c.encode({bytes.data(), m, {}}, src, {0, src.map.tokens}, t);
  if (result.code != status::ok) throw error(result.code, "encode: " + c.name());
  return bytes;
}

/// The first `tokens` tokens, decoded to float32.
inline rows decoded(any_codec const& c, layout const& m, std::byte const* bytes,
                    std::int64_t tokens, transform_view const& t = {}) {
  rows r(m.heads, m.head_dim, tokens);
  auto const code = c.decode({bytes, m, {}}, r.target(), {0, tokens}, t);
  if (code != status::ok) throw error(code, "decode: " + c.name());
  return r;
}

}  // namespace kvarts::test
