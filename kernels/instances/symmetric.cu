// SPDX-License-Identifier: Apache-2.0
// Groups without zero-points: along channels for keys, along tokens for values. The ranges differ
// in how scales are found, so they share kernels.
#include "instance.cuh"

namespace kvarts::kernels {

template <int Bits, range Range>
using key_groups = grouped<symmetric<Bits, Range>, axis::channel>;
template <int Bits, range Range>
using key_any = any_group<symmetric<Bits, Range>, axis::channel>;
template <int Bits, range Range>
using value_groups = grouped<symmetric<Bits, Range>, axis::token>;
template <int Bits, range Range>
using value_any = any_group<symmetric<Bits, Range>, axis::token>;

using enum range;
template struct keys_instances<key_groups<3, narrow>, key_groups<3, wide>, key_groups<3, searched>,
                               key_groups<4, narrow>, key_groups<4, wide>, key_groups<4, searched>,
                               key_any<3, narrow>, key_any<3, wide>, key_any<3, searched>,
                               key_any<4, narrow>, key_any<4, wide>, key_any<4, searched>>;
template struct values_instances<
    value_groups<2, narrow>, value_groups<2, wide>, value_groups<2, searched>,
    value_groups<3, narrow>, value_groups<3, wide>, value_groups<3, searched>,
    value_groups<4, narrow>, value_groups<4, wide>, value_groups<4, searched>, value_any<2, narrow>,
    value_any<2, wide>, value_any<2, searched>, value_any<3, narrow>, value_any<3, wide>,
    value_any<3, searched>, value_any<4, narrow>, value_any<4, wide>, value_any<4, searched>>;

}  // namespace kvarts::kernels
