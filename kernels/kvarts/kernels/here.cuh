// SPDX-License-Identifier: Apache-2.0
/// @file
/// Indices of a thread for long kernels: what is computed from them is computed where it is used,
/// see `kept_here`.
#pragma once

#include <kvarts/kernels/primitives.cuh>

namespace kvarts::kernels {

KVARTS_DEVICE int thread_here() { return kept_here(thread_index()); }
KVARTS_DEVICE int lane_here() { return thread_here() & (warp_lanes - 1); }
KVARTS_DEVICE int warp_here() { return static_cast<unsigned>(thread_here()) / warp_lanes; }

}  // namespace kvarts::kernels
