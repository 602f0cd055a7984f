// SPDX-License-Identifier: Apache-2.0
// 3-bit mid-rise codes, as tensor cores read them: the codec that bounded builds have.
#include "codes.cuh"

namespace kvarts::kernels {

using midrise3 = row_codec<midrise<3>>;
template struct code_instances<fragment<operand::keys>, midrise3>;
template struct code_instances<fragment<operand::values>, midrise3>;
template struct repack_instances<fragment<operand::keys>, midrise3>;
template struct repack_instances<fragment<operand::values>, midrise3>;

}  // namespace kvarts::kernels
