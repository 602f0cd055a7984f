// SPDX-License-Identifier: Apache-2.0
#include "kernels/codecs/make_device_codec.hpp"

namespace kvarts::test {

void add_channel_codecs(std::vector<device_codec>& list) {
  add_grouped<axis::channel, linear>(list, "linear", checked_quantizers{});
}

}  // namespace kvarts::test
