// SPDX-License-Identifier: Apache-2.0
// KIVI: groups with zero-points, along tokens for keys and along channels for values.
#include "attention.cuh"

namespace kvarts::kernels {

template struct attention_instances<preset::kivi>;

}  // namespace kvarts::kernels
