// SPDX-License-Identifier: Apache-2.0
// Groups with zero-points, as KIVI has them: along tokens for keys, along channels for values.
#include "instance.cuh"

namespace kvarts::kernels {

template struct keys_instances<grouped<affine<2>, axis::token>, any_group<affine<2>, axis::token>>;
template struct values_instances<grouped<affine<2>, axis::channel>,
                                 any_group<affine<2>, axis::channel>>;

}  // namespace kvarts::kernels
