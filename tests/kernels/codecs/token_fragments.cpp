// SPDX-License-Identifier: Apache-2.0
#include "kernels/codecs/make_device_codec.hpp"

namespace kvarts::test {

void add_token_fragments(std::vector<device_codec>& list) {
  add_grouped<axis::token, fragment<operand::values>>(list, "values", checked_quantizers{});
  add_grouped<axis::token, fragment<operand::keys>>(list, "keys", type_list<affine<2>>{});
}

}  // namespace kvarts::test
