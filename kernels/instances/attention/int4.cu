// SPDX-License-Identifier: Apache-2.0
// Groups of 4 bits, along channels for keys and along tokens for values.
#include "attention.cuh"

namespace kvarts::kernels {

template struct attention_instances<preset::int4>;

}  // namespace kvarts::kernels
