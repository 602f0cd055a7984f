// SPDX-License-Identifier: Apache-2.0
/// @file
/// What copies to shared memory have in common.
#pragma once

#include <cstddef>

namespace kvarts::kernels::simt {

/// Throws unless the bytes are all in shared memory and aligned; `what` is a verb.
void check_shared(void const* at, std::size_t bytes, std::size_t alignment, char const* what);

/// Overwrites what a copy that is under way will overwrite.
void poison(std::byte* at, std::size_t bytes);

}  // namespace kvarts::kernels::simt
