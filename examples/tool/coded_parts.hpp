// SPDX-License-Identifier: Apache-2.0
/// @file
/// Codes and parameters of encoded rows as plain arrays.
#pragma once

#include "codec_ops.hpp"

#include <string>

namespace kvarts::tool {

/// Writes `PREFIX.codes_u8.npy`, `PREFIX.scale_f16.npy` (bf16 scales: `PREFIX.scale_bf16.npy`, u16;
/// 32-bit ones: `PREFIX.scale_f32.npy`) and, for codecs with zero-points, `PREFIX.zero_f16.npy`.
/// Codes are offset binary, `[tokens, heads, head_dim]`; parameters are `[tokens, heads, groups]`
/// along channels, `[groups, heads, head_dim]` along tokens, `[tokens, heads]` for row codecs.
/// Without `heads_axis` there is one head, and no axis for it.
void write_parts(std::string const& prefix, codec_ops const& codec, kvt_header const& header,
                 coded_source coded, bool heads_axis);

}  // namespace kvarts::tool
