// SPDX-License-Identifier: Apache-2.0
/// @file
/// What launches of a modelled device do when they run: one page by the plain `encode` or `decode`.
#pragma once

#include <kvarts/codec_list.hpp>
#include <kvarts/decode.hpp>
#include <kvarts/quantizer.hpp>
#include <kvarts/tier/device.hpp>

#include <string_view>
#include <type_traits>

namespace kvarts::test {

/// The codecs that modelled devices have.
using model_codecs =
    type_list<row_codec<int8_head>, row_codec<midrise<8>>, row_codec<midrise<3>>,
              codec<symmetric<3, range::narrow>, axis::token, 8>, identity<bfloat16>>;

struct page_coder_pair {
  codec_info info;
  void (*encode)(tier::encode_launch const& l, std::int32_t coded, std::int32_t plain);
  void (*decode)(tier::decode_launch const& l, std::int32_t coded, std::int32_t plain);
};

template <class C>
page_coder_pair const& page_coders_of() {
  static constexpr page_coder_pair pair{
      info_of<C>(),
      [](tier::encode_launch const& l, std::int32_t coded, std::int32_t plain) {
        view<C> const to{l.coded, l.map, {&coded, 1}};
        source_view from = l.plain;
        from.table = {&plain, 1};
        static_cast<void>(kvarts::encode(to, from, {0, l.map.page_tokens}, l.transform));
      },
      [](tier::decode_launch const& l, std::int32_t coded, std::int32_t plain) {
        view<C, std::byte const> const from{l.coded, l.map, {&coded, 1}};
        target_view to = l.plain;
        to.table = {&plain, 1};
        static_cast<void>(kvarts::decode(from, to, {0, l.map.page_tokens}, l.transform));
      }};
  return pair;
}

template <class... Codecs>
page_coder_pair const* find_page_coder(codec_info const& c, type_list<Codecs...>) {
  page_coder_pair const* found = nullptr;
  auto const attempt = [&](page_coder_pair const& pair) {
    if (std::string_view(pair.info.name) == std::string_view(c.name)) found = &pair;
  };
  (attempt(page_coders_of<Codecs>()), ...);
  return found;
}

inline page_coder_pair const* find_page_coder(codec_info const& c) {
  return find_page_coder(c, model_codecs{});
}

/// Page i of a launch, with the lists as they are now. Pages outside are left out, as kernels do.
template <class Coded, class Plain>
void run_page(tier::page_launch<Coded, Plain> const& l, int i) {
  std::int32_t const coded = l.coded_pages != nullptr ? l.coded_pages[i] : i;
  std::int32_t const plain = l.plain_pages[i];
  page_coder_pair const& coder = *find_page_coder(l.codec);
  if constexpr (std::is_const_v<Coded>) {
    coder.decode(l, coded, plain);
  } else {
    coder.encode(l, coded, plain);
  }
}

}  // namespace kvarts::test
