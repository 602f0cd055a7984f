// SPDX-License-Identifier: Apache-2.0
/// @file
/// The quantizers of groups whose kernels tests compile.
#pragma once

#include "support/sanitized.hpp"

#include <kvarts/codec_list.hpp>

#include <type_traits>

namespace kvarts::test {

/// All that are shipped; with a sanitizer, whose builds cost several times as much, each kind and
/// each number of bits: what a kernel does to memory depends on nothing else.
using checked_quantizers = std::conditional_t<
    sanitized,
    type_list<symmetric<3, range::narrow>, symmetric<4, range::searched>, symmetric<8, range::wide>,
              affine<1>, affine<2>, hybrid<2, range::narrow>>,
    group_quantizers>;

}  // namespace kvarts::test
