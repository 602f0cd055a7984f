// SPDX-License-Identifier: Apache-2.0
#include "kernels/codecs/make_device_codec.hpp"

namespace kvarts::test {

void add_channel_fragments(std::vector<device_codec>& list) {
  add_grouped<axis::channel, fragment<operand::keys>>(list, "keys", checked_quantizers{});
  add_grouped<axis::channel, fragment<operand::values>>(list, "values", type_list<affine<4>>{});
}

}  // namespace kvarts::test
