// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a host tier takes and holds for a model and a pair of codecs.
#pragma once

#include "tier/models.hpp"

#include <kvarts/tier/capacity.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// A codec for K and one for V, under the name of a preset or of its own.
struct codec_pair {
  std::string name;
  codec_info keys;
  codec_info values;
};

/// The shipped presets.
std::vector<codec_pair> const& preset_pairs();

/// The preset of this name; throws `tool_error` (bad usage) when there is none.
codec_pair const& find_pair(std::string_view name);

/// How a tier lies in memory; the layers, heads and codecs are those of a model and a pair.
struct tier_form {
  tier::record_kind record = tier::record_kind::row;
  int page_tokens = 1;
  int alignment = 128;
  tier::host_layout placement = tier::host_layout::layer_first;
  int ranks = 1;
};

/// The tier of one rank. MLA's latent takes the codec of the keys, its RoPE channels stay in 16
/// bits, and every rank keeps them. Unchecked.
tier::geometry geometry_of(model_shape const& model, codec_pair const& codecs,
                           tier_form const& form);

/// One codec pair of a plan.
struct plan_line {
  std::string codec;
  std::string refusal;  ///< why there is none; then nothing below is set
  std::int64_t bytes_per_token = 0;
  std::int64_t bytes_per_page = 0;
  tier::capacity strict, sglang;
  double share = 0;  ///< of the bytes of 16-bit values without padding
  // Of models with windows: what layers that attend to everything keep of a token, and the others
  // of a sequence.
  std::int64_t full_layer_bytes = 0;
  std::int64_t window_bytes = 0;
};

/// Sizes of a tier, and what `budget` bytes hold.
plan_line plan_for(model_shape const& model, codec_pair const& codecs, tier_form const& form,
                   std::int64_t budget);

}  // namespace kvarts::tool
