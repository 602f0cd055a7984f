// SPDX-License-Identifier: Apache-2.0
// The list of `any_codec.hpp`: every shipped codec is instantiated here, once for all tests.
#include "support/any_codec.hpp"

#include <kvarts/codec_list.hpp>
#include <kvarts/decode.hpp>
#include <kvarts/encode.hpp>
#include <kvarts/gemv.hpp>
#include <kvarts/make_layout.hpp>

namespace kvarts::test {

namespace {

template <codec_type C>
any_codec make_any_codec() {
  any_codec a{};
  a.info = info_of<C>();
  if constexpr (C::grouped_along != axis::token) {
    a.row_records = [](int heads, int head_dim, std::int64_t tokens, int alignment, int group) {
      return make_row_records<C>(heads, head_dim, tokens, alignment, group);
    };
  }
  a.head_tiles = [](int heads, int head_dim, std::int64_t tokens, tile_options o) {
    return make_head_tiles<C>(heads, head_dim, tokens, o);
  };
  a.pages = [](int heads, int head_dim, std::int64_t pages, int page_tokens, tile_options o) {
    return make_pages<C>(heads, head_dim, pages, page_tokens, o);
  };
  a.check = [](layout const& m) { return kvarts::check<C>(m); };
  a.encode = [](coded<std::byte> dst, source_view src, token_range tokens,
                transform_view const& t) {
    return kvarts::encode(view<C>{dst.data, dst.map, dst.table}, src, tokens, t);
  };
  a.decode = [](coded<std::byte const> src, target_view dst, token_range tokens,
                transform_view const& t) {
    return kvarts::decode(view<C, std::byte const>{src.data, src.map, src.table}, dst, tokens, t);
  };
  a.gemv_qk = [](coded<std::byte const> keys, token_range tokens, int query_heads,
                 float const* queries, double const* bias, float* scores) {
    view<C, std::byte const> const v{keys.data, keys.map, keys.table};
    return kvarts::gemv_qk(v, tokens, query_heads, queries, bias, scores);
  };
  a.gemv_pv = [](coded<std::byte const> values, token_range tokens, int query_heads, float const* p,
                 float* output) {
    view<C, std::byte const> const v{values.data, values.map, values.table};
    return kvarts::gemv_pv(v, tokens, query_heads, p, output);
  };
  return a;
}

}  // namespace

std::vector<any_codec> const& all_codecs() {
  static std::vector<any_codec> const all = [] {
    std::vector<any_codec> list;
    for_each_codec(
        [&](auto tag) { list.push_back(make_any_codec<typename decltype(tag)::type>()); });
    return list;
  }();
  return all;
}

}  // namespace kvarts::test
