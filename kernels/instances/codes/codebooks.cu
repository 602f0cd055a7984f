// SPDX-License-Identifier: Apache-2.0
// TurboQuant's keys and values, in the packings that they are stored in.
#include "codes.cuh"

namespace kvarts::kernels {

using keys4 = row_codec<codebook<4, float>>;
using values3 = row_codec<codebook<3, float>>;
using corrected_keys4 = row_codec<codebook<4, half>>;
using corrected_values3 = row_codec<codebook<3, half>>;
template struct code_instances<linear, keys4, values3, corrected_keys4, corrected_values3>;
template struct code_instances<fragment<operand::keys>, keys4, corrected_keys4>;
template struct code_instances<fragment<operand::values>, values3, corrected_values3>;
template struct repack_instances<fragment<operand::keys>, keys4, corrected_keys4>;
template struct repack_instances<fragment<operand::values>, values3, corrected_values3>;

}  // namespace kvarts::kernels
