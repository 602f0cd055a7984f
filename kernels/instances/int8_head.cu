// SPDX-License-Identifier: Apache-2.0
// Rows of 8 bits with a bfloat16 scale.
#include "instance.cuh"

namespace kvarts::kernels {

template struct keys_instances<row_codec<int8_head>>;
template struct values_instances<row_codec<int8_head>>;

}  // namespace kvarts::kernels
