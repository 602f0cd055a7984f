// SPDX-License-Identifier: Apache-2.0
// Rows of 8 bits.
#include "attention.cuh"

namespace kvarts::kernels {

template struct attention_instances<preset::int8>;

}  // namespace kvarts::kernels
