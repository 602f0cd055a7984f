// SPDX-License-Identifier: Apache-2.0
// Rows of codes that stand for entries of a table: 4 bits for keys, 3 bits for values.
#include "instance.cuh"

namespace kvarts::kernels {

template struct keys_instances<row_codec<codebook<4, float>>, row_codec<codebook<4, half>>>;
template struct values_instances<row_codec<codebook<3, float>>, row_codec<codebook<3, half>>>;

}  // namespace kvarts::kernels
