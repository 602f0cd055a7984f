// SPDX-License-Identifier: Apache-2.0
// The other codecs with one scale a row, in every packing, and plain rows.
#include "codes.cuh"

namespace kvarts::kernels {

using keys = fragment<operand::keys>;
using values = fragment<operand::values>;

template struct code_instances<linear, row_codec<midrise<2>>, row_codec<midrise<3>>,
                               row_codec<midrise<4>>, row_codec<midrise<8>>, row_codec<int8_head>,
                               identity<half>, identity<bfloat16>>;
template struct code_instances<keys, row_codec<midrise<2>>, row_codec<midrise<4>>,
                               row_codec<midrise<8>>, row_codec<int8_head>>;
template struct code_instances<values, row_codec<midrise<2>>, row_codec<midrise<4>>,
                               row_codec<midrise<8>>, row_codec<int8_head>>;
template struct repack_instances<keys, row_codec<midrise<2>>, row_codec<midrise<4>>,
                                 row_codec<midrise<8>>, row_codec<int8_head>>;
template struct repack_instances<values, row_codec<midrise<2>>, row_codec<midrise<4>>,
                                 row_codec<midrise<8>>, row_codec<int8_head>>;

}  // namespace kvarts::kernels
