// SPDX-License-Identifier: Apache-2.0
/// @file
/// Tensors of a .safetensors file that belong to layers: `layers.{i}.{part}`, with `k`, `v` and `q`
/// in dumps, `center` and `norm` in transform files.
#pragma once

#include "safetensors.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// The name of a part of a layer.
std::string layer_tensor_name(int layer, std::string_view part);

/// Layers that have this part, in rising order.
std::vector<int> layers_with(safetensors const& contents, std::string_view part);

/// The part of a layer; null when there is none.
tensor const* find_layer_tensor(safetensors const& contents, int layer, std::string_view part);

}  // namespace kvarts::tool
