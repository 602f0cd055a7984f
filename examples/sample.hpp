// SPDX-License-Identifier: Apache-2.0
/// @file
/// The sample in examples/data as tensors, and attention on it, for examples that work on real
/// keys and values.
#pragma once

#include "safetensors.hpp"

#include <kvarts/kvarts.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace kvarts::examples {

/// Of layers 0 and 12: K and V `[768, 2, 64]`, Q `[128, 14, 64]` of the last tokens.
inline constexpr int layers = 2, heads = 2, head_dim = 64, query_heads = 14, tokens = 768;
inline constexpr int row = heads * head_dim;

struct sample {
  std::vector<half> keys[layers], values[layers], queries[layers];

  sample() {
    auto const file = tool::open_safetensors("examples/data/sample.safetensors");
    for (int l = 0; l < layers; ++l) {
      keys[l] = tensor_of(file.contents, l, "k");
      values[l] = tensor_of(file.contents, l, "v");
      queries[l] = tensor_of(file.contents, l, "q");
    }
  }

  /// The transform of a layer's keys, from keys and queries of another text.
  static transform calibration(int layer) {
    auto const file = tool::open_safetensors("examples/data/sample.calibration.safetensors");
    auto const k = tensor_of(file.contents, layer, "k"), q = tensor_of(file.contents, layer, "q");
    return calibrate(
        make_tensor(k.data(), heads, head_dim, std::ssize(k) / row),
        make_tensor(q.data(), query_heads, head_dim, std::ssize(q) / (query_heads * head_dim)));
  }

 private:
  static std::vector<half> tensor_of(tool::safetensors const& file, int layer, char const* part) {
    auto const& t = file.tensors.at("layers." + std::to_string(layer * 12) + "." + part);
    std::vector<half> values(t.bytes.size() / sizeof(half));
    std::memcpy(values.data(), t.bytes.data(), t.bytes.size());
    return values;
  }
};

/// Attention of the sample's last query, all heads, in float64: `key(t)` and `value(t)` are rows
/// `[heads, head_dim]` of token t.
template <class Key, class Value>
std::vector<double> attend(std::vector<half> const& queries, Key const& key, Value const& value) {
  std::vector<double> out(query_heads * head_dim);
  half const* const last = queries.data() + queries.size() - out.size();
  for (int h = 0; h < query_heads; ++h) {
    int const kv_head = h / (query_heads / heads);
    std::vector<double> weights(tokens);
    for (int t = 0; t < tokens; ++t) {
      for (int d = 0; d < head_dim; ++d) {
        weights[t] += double{last[h * head_dim + d]} * key(t)[kv_head * head_dim + d];
      }
    }
    double const highest = *std::max_element(weights.begin(), weights.end());
    double sum = 0.0;
    for (double& w : weights) sum += w = std::exp((w - highest) / std::sqrt(double{head_dim}));
    for (int t = 0; t < tokens; ++t) {
      half const* const v = value(t) + kv_head * head_dim;
      for (int d = 0; d < head_dim; ++d) out[h * head_dim + d] += weights[t] / sum * v[d];
    }
  }
  return out;
}

/// How far attention on other rows is from that on the sample's own, relative to its size.
template <class Key, class Value>
double attention_error(sample const& s, int layer, Key const& key, Value const& value) {
  auto const rows = [](std::vector<half> const& all) {
    return [&all](int t) { return all.data() + t * row; };
  };
  auto const want = attend(s.queries[layer], rows(s.keys[layer]), rows(s.values[layer]));
  auto const have = attend(s.queries[layer], key, value);
  double errors = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    errors += (have[i] - want[i]) * (have[i] - want[i]);
    squares += want[i] * want[i];
  }
  return std::sqrt(errors / squares);
}

}  // namespace kvarts::examples
