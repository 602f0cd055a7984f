// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which preset to take: what `kvarts eval` concludes from its measures.
#pragma once

#include "eval_result.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kvarts::tool {

/// A preset is unsafe in a layer where the weights of a KV head diverge by more nats than this: by
/// Pinsker's inequality up to sqrt(.25 / 2) = 35% of the attention may then go to other tokens.
inline constexpr double unsafe_kl = 0.25;

/// A channel of keys is constant where its mean is this many times the deviation of a usual channel
/// of its head: a scale that other channels share with it has no resolution left for them.
inline constexpr double constant_channel = 8;

/// A layer in which a preset is unsafe. Presets are places in `eval_result::presets`.
struct unsafe_place {
  std::size_t preset = 0;
  int layer = 0;
  std::vector<int> kv_heads;
  double kl = 0;                    ///< of the worst KV head
  bool constant_channels = false;   ///< of keys whose center the preset does not take off
  std::optional<std::size_t> cure;  ///< a preset that is safe there
};

/// Another preset for a layer in which the chosen one is unsafe.
struct layer_override {
  int layer = 0;
  std::size_t preset = 0;
};

/// What to take. Presets are places in `eval_result::presets`.
struct eval_choice {
  std::string windows;               ///< "on" where that was measured, else "off"
  std::vector<std::size_t> ranking;  ///< presets within the budget, the one to take first
  std::vector<layer_override> overrides;
  std::vector<unsafe_place> unsafe;
};

/// Ranks the presets within the budget of a result: by output error under a limit of bits, else by
/// bits (equal ones by output error). Without a budget, presets that are safe everywhere count.
eval_choice choose(eval_result const& result);

/// The choice in words: what to take first, then a sentence for each unsafe place.
std::vector<std::string> sentences_of(eval_choice const& choice, eval_result const& result);

}  // namespace kvarts::tool
