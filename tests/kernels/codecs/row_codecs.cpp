// SPDX-License-Identifier: Apache-2.0
#include "kernels/codecs/make_device_codec.hpp"

namespace kvarts::test {

void add_row_codecs(std::vector<device_codec>& list) {
  detail::for_each_type(row_codecs{}, [&](auto tag) {
    list.push_back(make_device_codec<typename decltype(tag)::type, linear>("linear"));
  });
}

}  // namespace kvarts::test
