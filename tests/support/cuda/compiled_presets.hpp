// SPDX-License-Identifier: Apache-2.0
/// @file
/// The presets whose attention this build of `kvarts::cuda` has: all, or one family of them.
#pragma once

#include <kvarts/scheme.hpp>

#include <tuple>

namespace kvarts::test {

#if KVARTS_CUDA_ATTENTION
inline constexpr auto const& attention_presets = presets;
#else
inline constexpr std::tuple attention_presets{preset::k3v3, preset::k3v2, preset::k2v2};
#endif

}  // namespace kvarts::test
