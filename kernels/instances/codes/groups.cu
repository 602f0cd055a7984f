// SPDX-License-Identifier: Apache-2.0
// Codecs in groups of 32, in the packings that presets store them in.
#include "codes.cuh"

namespace kvarts::kernels {

using keys = fragment<operand::keys>;
using values = fragment<operand::values>;
template <class Quantizer>
using channels = codec<Quantizer, axis::channel, 32>;
template <class Quantizer>
using tokens = codec<Quantizer, axis::token, 32>;

using enum range;
template struct code_instances<keys, channels<symmetric<3, narrow>>, channels<symmetric<3, wide>>,
                               channels<symmetric<3, searched>>, channels<symmetric<4, wide>>,
                               tokens<affine<2>>>;
template struct code_instances<values, tokens<symmetric<2, narrow>>, tokens<symmetric<2, wide>>,
                               tokens<symmetric<2, searched>>, tokens<symmetric<3, narrow>>,
                               tokens<symmetric<3, wide>>, tokens<symmetric<3, searched>>,
                               tokens<symmetric<4, wide>>, tokens<hybrid<2, narrow>>,
                               tokens<hybrid<2, wide>>, channels<affine<2>>>;

}  // namespace kvarts::kernels
