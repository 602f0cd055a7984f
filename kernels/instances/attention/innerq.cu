// SPDX-License-Identifier: Apache-2.0
// InnerQ's presets: its levels differ in how scales are found, so they share kernels.
#include "attention.cuh"

namespace kvarts::kernels {

template struct attention_instances<preset::innerq_base, preset::innerq_base_wide,
                                    preset::innerq_base_searched, preset::innerq_hybrid,
                                    preset::innerq_hybrid_wide, preset::innerq_small,
                                    preset::innerq_small_wide, preset::innerq_small_searched>;

}  // namespace kvarts::kernels
