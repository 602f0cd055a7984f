// SPDX-License-Identifier: Apache-2.0
// 16-bit keys and values: the baseline, and layers that are not coded.
#include "attention.cuh"

namespace kvarts::kernels {

template struct attention_instances<preset::fp16, preset::bf16>;

}  // namespace kvarts::kernels
