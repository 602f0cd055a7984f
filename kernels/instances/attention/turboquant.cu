// SPDX-License-Identifier: Apache-2.0
// TurboQuant: rows of codes that stand for entries of a table.
#include "attention.cuh"

namespace kvarts::kernels {

template struct attention_instances<preset::turboquant, preset::turboquant_calibrated>;

}  // namespace kvarts::kernels
