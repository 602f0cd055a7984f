// SPDX-License-Identifier: Apache-2.0
#include "codec_ops_of.hpp"

namespace kvarts::tool {

template codec_ops const* find_codec_along<axis::row>(std::string_view);

}  // namespace kvarts::tool
