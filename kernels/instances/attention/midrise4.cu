// SPDX-License-Identifier: Apache-2.0
// Rows of mid-rise codes, keys of 4 bits and more.
#include "attention.cuh"

namespace kvarts::kernels {

template struct attention_instances<preset::k8v8, preset::k4v4, preset::k4v3, preset::k4v2>;

}  // namespace kvarts::kernels
