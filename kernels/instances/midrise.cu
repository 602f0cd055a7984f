// SPDX-License-Identifier: Apache-2.0
// Rows of mid-rise codes with one scale each.
#include "instance.cuh"

namespace kvarts::kernels {

template struct keys_instances<row_codec<midrise<2>>, row_codec<midrise<3>>, row_codec<midrise<4>>,
                               row_codec<midrise<8>>>;
template struct values_instances<row_codec<midrise<2>>, row_codec<midrise<3>>,
                                 row_codec<midrise<4>>, row_codec<midrise<8>>>;

}  // namespace kvarts::kernels
