// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whether a page that comes back from the tier may go there again without a change.
#pragma once

#include <kvarts/codec.hpp>
#include <kvarts/dtype.hpp>
#include <kvarts/quantizer.hpp>
#include <kvarts/transform.hpp>

#include <string_view>

namespace kvarts::tier {

/// Whether rows of tensors of `type` that were encoded and decoded to such tensors are encoded to
/// the same bytes again. 16-bit values are where the tensors hold them exactly, INT8 a head is for
/// bfloat16 and float32 without a transform. Of all others false is said: their scales come from
/// numbers that decoding rounds, so a page keeps its record rather than be encoded again.
inline bool reencodes_alike(codec_info const& c, dtype type,
                            transform_view const& t = {}) noexcept {
  if (t.center != nullptr || t.norm != nullptr || t.rotate.rounds != 0) return false;
  std::string_view const name(c.name);
  if (name == std::string_view(identity<half>::name())) return type != dtype::bf16;
  if (name == std::string_view(identity<bfloat16>::name())) return type != dtype::f16;
  return name == std::string_view(info_of<row_codec<int8_head>>().name) && type != dtype::f16;
}

}  // namespace kvarts::tier
