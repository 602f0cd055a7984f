// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the report shows of keys and values themselves: why some codecs fail on them and others do
/// not.
#pragma once

#include "eval_result.hpp"

#include <cstddef>
#include <span>

namespace kvarts::tool {

/// Channels of the keys of one KV head: rows `[tokens, head_dim]` in model space, and in coded
/// space.
channel_profile profile_channels(int layer, int kv_head, std::span<float const> keys,
                                 std::span<float const> coded_keys, std::size_t head_dim);

/// Norms of the values of one KV head, rows `[tokens, head_dim]`.
value_norms norms_of_values(int layer, int kv_head, std::span<float const> values,
                            std::size_t head_dim);

}  // namespace kvarts::tool
