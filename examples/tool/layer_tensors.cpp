// SPDX-License-Identifier: Apache-2.0
#include "layer_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace kvarts::tool {

std::string layer_tensor_name(int layer, std::string_view part) {
  return fmt::format("layers.{}.{}", layer, part);
}

std::vector<int> layers_with(safetensors const& contents, std::string_view part) {
  constexpr std::string_view prefix = "layers.";
  std::vector<int> layers;
  for (auto const& [name, values] : contents.tensors) {
    if (!name.starts_with(prefix)) continue;
    int layer = -1;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), layer);
    if (layer >= 0 && name == layer_tensor_name(layer, part)) layers.push_back(layer);
  }
  std::sort(layers.begin(), layers.end());
  return layers;
}

tensor const* find_layer_tensor(safetensors const& contents, int layer, std::string_view part) {
  auto const found = contents.tensors.find(layer_tensor_name(layer, part));
  return found == contents.tensors.end() ? nullptr : &found->second;
}

}  // namespace kvarts::tool
