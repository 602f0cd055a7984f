// SPDX-License-Identifier: Apache-2.0
#include "tier/models.hpp"

#include "unknown_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace kvarts::tool {

namespace {

// From the `config.json` that each model is published with: num_hidden_layers,
// num_key_value_heads and head_dim (hidden_size / num_attention_heads where that is absent). Layers
// with a window: Gemma 3 has five after each other and then one without (sliding_window_pattern 6),
// gpt-oss every second one (layer_types). MLA: kv_lora_rank and qk_rope_head_dim, one "head" that
// all query heads share.
std::vector<model_shape> const models = {
    {"Qwen2.5-7B", 28, 4, 128},
    {"Qwen2.5-72B", 80, 8, 128},
    {"Qwen3-8B", 36, 8, 128},
    {"Qwen3-32B", 64, 8, 128},
    {"Qwen3-30B-A3B", 48, 4, 128},
    {"Llama-3.1-8B", 32, 8, 128},
    {"Llama-3.1-70B", 80, 8, 128},
    {"Llama-3.1-405B", 126, 8, 128},
    {"Mistral-7B-v0.3", 32, 8, 128},
    {"Gemma-3-12B", 48, 8, 256, 40, 1024},
    {"Gemma-3-27B", 62, 16, 128, 52, 1024},
    {"gpt-oss-20b", 24, 8, 64, 12, 128},
    {"gpt-oss-120b", 36, 8, 64, 18, 128},
    {"DeepSeek-V3", 61, 1, 512, 0, 0, 64},
};

}  // namespace

std::span<model_shape const> known_models() { return models; }

model_shape const& find_model(std::string_view name) {
  return find_named(models, "model", name, "give --layers, --kv-heads and --head-dim instead");
}

std::string model_names() {
  std::vector<std::string_view> names;
  for (model_shape const& m : models) names.push_back(m.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace kvarts::tool
