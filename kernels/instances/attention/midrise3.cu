// SPDX-License-Identifier: Apache-2.0
// Rows of mid-rise codes, keys of 2 and 3 bits: the attention that bounded builds have.
#include "attention.cuh"

namespace kvarts::kernels {

template struct attention_instances<preset::k3v3, preset::k3v2, preset::k2v2>;

}  // namespace kvarts::kernels
