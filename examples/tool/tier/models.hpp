// SPDX-License-Identifier: Apache-2.0
/// @file
/// The KV caches of known models.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvarts::tool {

/// What a model keeps for each token.
struct model_shape {
  std::string name;
  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;       ///< of K and of V; of the latent where there are RoPE channels
  int window_layers = 0;  ///< of the layers, those that attend to the last `window` tokens only
  int window = 0;
  int rope_dim = 0;  ///< MLA: 16-bit channels behind the coded latent; there is no V then

  bool is_latent() const { return rope_dim > 0; }
};

/// All models that the program knows by name.
std::span<model_shape const> known_models();

/// The model of this name; throws `tool_error` (bad usage) when there is none.
model_shape const& find_model(std::string_view name);

/// All their names, for help.
std::string model_names();

}  // namespace kvarts::tool
