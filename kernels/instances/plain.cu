// SPDX-License-Identifier: Apache-2.0
// 16-bit rows: baselines, windows and layers that are not coded.
#include "instance.cuh"

namespace kvarts::kernels {

template struct row_instances<identity<half>, identity<bfloat16>>;
template struct keys_instances<identity<half>, identity<bfloat16>>;
template struct values_instances<identity<half>, identity<bfloat16>>;

}  // namespace kvarts::kernels
