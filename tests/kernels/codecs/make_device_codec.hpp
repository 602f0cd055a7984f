// SPDX-License-Identifier: Apache-2.0
/// @file
/// Builds an entry of `device_codec.hpp`; its sources divide the work of compiling them.
#pragma once

#include "kernels/codecs/device_codec.hpp"
#include "support/checked_quantizers.hpp"

#include <kvarts/codec_list.hpp>
#include <kvarts/decode.hpp>
#include <kvarts/kernels/decode.cuh>
#include <kvarts/kernels/encode.cuh>

namespace kvarts::test {

template <codec_type C, packing P>
device_codec make_device_codec(char const* packing_name) {
  device_codec c{};
  c.info = info_of<C>();
  c.packing = packing_name;
  if constexpr (C::grouped_along != axis::token && std::is_same_v<P, linear>) {
    c.row_records = make_row_records<C, P>;
  }
  c.head_tiles = make_head_tiles<C, P>;
  c.pages = make_pages<C, P>;
  c.host_encode = [](coded<std::byte> dst, source_view src, token_range tokens,
                     transform_view const& t) {
    return kvarts::encode(view<C, std::byte, P>{dst.data, dst.map, dst.table}, src, tokens, t);
  };
  c.host_decode = [](coded<std::byte const> src, target_view dst, token_range tokens,
                     transform_view const& t) {
    return kvarts::decode(view<C, std::byte const, P>{src.data, src.map, src.table}, dst, tokens,
                          t);
  };
  c.encode = [](coded<std::byte> dst, source_view src, cuda::rows const& which,
                transform_view const& t, cuda::encode_counts* counts) {
    return cuda::encode(view<C, std::byte, P>{dst.data, dst.map, dst.table}, src, which, t, counts,
                        nullptr);
  };
  c.append = [](coded<std::byte> dst, source_view src, std::int64_t const* slots,
                transform_view const& t, cuda::encode_counts* counts) {
    return cuda::append(view<C, std::byte, P>{dst.data, dst.map, dst.table}, src, slots, t, counts,
                        nullptr);
  };
  c.decode = [](coded<std::byte const> src, target_view dst, cuda::rows const& which,
                transform_view const& t) {
    return cuda::decode(view<C, std::byte const, P>{src.data, src.map, src.table}, dst, which, t,
                        nullptr);
  };
  c.explain = [](layout const& m) {
    auto const plain = make_tensor_layout(dtype::f32, m.heads, m.head_dim, 1,
                                          {m.heads * m.head_dim, m.head_dim, 0});
    cuda::rows which;
    if (m.page_tokens > 0) which.block_tables = &m.heads;  // any; it is not read
    return cuda::explain_encode(view<C, std::byte, P>{nullptr, m, {}},
                                source_view{nullptr, dtype::f32, plain, {}}, which);
  };
  return c;
}

/// Codecs of these quantizers, along an axis.
template <axis Along, packing P, class... Quantizers>
void add_grouped(std::vector<device_codec>& list, char const* packing_name,
                 type_list<Quantizers...>) {
  (list.push_back(make_device_codec<codec<Quantizers, Along>, P>(packing_name)), ...);
}

/// What each source adds.
void add_row_codecs(std::vector<device_codec>& list);
void add_row_fragments(std::vector<device_codec>& list);
void add_channel_codecs(std::vector<device_codec>& list);
void add_channel_fragments(std::vector<device_codec>& list);
void add_token_codecs(std::vector<device_codec>& list);
void add_token_fragments(std::vector<device_codec>& list);

}  // namespace kvarts::test
