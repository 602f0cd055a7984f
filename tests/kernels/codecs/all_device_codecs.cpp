// SPDX-License-Identifier: Apache-2.0
#include "kernels/codecs/make_device_codec.hpp"

namespace kvarts::test {

std::vector<device_codec> const& device_codecs() {
  static std::vector<device_codec> const all = [] {
    std::vector<device_codec> list;
    add_row_codecs(list);
    add_row_fragments(list);
    add_channel_codecs(list);
    add_channel_fragments(list);
    add_token_codecs(list);
    add_token_fragments(list);
    return list;
  }();
  return all;
}

}  // namespace kvarts::test
