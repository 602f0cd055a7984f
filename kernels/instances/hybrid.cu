// SPDX-License-Identifier: Apache-2.0
// Values in groups of tokens, each symmetric or affine.
#include "instance.cuh"

namespace kvarts::kernels {

using enum range;
template struct values_instances<
    grouped<hybrid<2, narrow>, axis::token>, grouped<hybrid<2, wide>, axis::token>,
    any_group<hybrid<2, narrow>, axis::token>, any_group<hybrid<2, wide>, axis::token>>;

}  // namespace kvarts::kernels
