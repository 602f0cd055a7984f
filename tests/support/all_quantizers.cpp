// SPDX-License-Identifier: Apache-2.0
// The list of `any_quantizer.hpp`: every quantizer is instantiated here, once for all tests.
#include "support/any_quantizer.hpp"

#include <kvarts/codec_list.hpp>

namespace kvarts::test {

std::vector<any_quantizer> const& all_quantizers() {
  static std::vector<any_quantizer> const all = [] {
    std::vector<any_quantizer> list;
    for_each_codec([&](auto tag) {
      using codec = typename decltype(tag)::type;
      if constexpr (codec::grouped_along != axis::token && !codec::plain) {
        using quantizer = typename codec::quantizer_type;
        if constexpr (!requires(float const* x) { quantizer::row_length(x, 1); }) {
          list.push_back({std::string(std::string_view(quantizer::name())), quantizer::bits,
                          quantizer::clamps_rows, quantize_with<quantizer>});
        }
      }
    });
    return list;
  }();
  return all;
}

}  // namespace kvarts::test
