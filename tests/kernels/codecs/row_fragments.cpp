// SPDX-License-Identifier: Apache-2.0
#include "kernels/codecs/make_device_codec.hpp"

namespace kvarts::test {

void add_row_fragments(std::vector<device_codec>& list) {
  detail::for_each_type(row_codecs{}, [&](auto tag) {
    using codec = typename decltype(tag)::type;
    if constexpr (!codec::plain) {
      list.push_back(make_device_codec<codec, fragment<operand::keys>>("keys"));
    }
  });
  list.push_back(make_device_codec<row_codec<midrise<3>>, fragment<operand::values>>("values"));
  list.push_back(make_device_codec<row_codec<midrise<2>>, fragment<operand::values>>("values"));
}

}  // namespace kvarts::test
