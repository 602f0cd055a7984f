// SPDX-License-Identifier: Apache-2.0
/// @file
/// Dumps of a model's queries, keys and values: .safetensors files with `layers.{i}.k` and `.v`
/// `[tokens, kv_heads, head_dim]`, tokens 0.. of one sequence, and `layers.{i}.q` `[queries,
/// q_heads, head_dim]`, the queries of its last tokens; query head h reads KV head h / (q_heads /
/// kv_heads).
#pragma once

#include "safetensors.hpp"

#include <kvarts/tensor.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// Tensors that every layer of a dump must have, besides its keys.
struct dump_needs {
  bool queries = true;
  bool values = true;
};

/// One layer; views of the file's bytes. All numbers are finite.
struct dump_layer {
  int layer = 0;
  source_view k{};
  std::optional<source_view> q;
  std::optional<source_view> v;
};

/// What all layers have in common, and the layers in ascending order.
struct dump {
  std::string name;   ///< of the file
  std::string model;  ///< metadata, empty when the file has none
  std::string text;
  std::string rope;  ///< "half-split" or "interleaved pairs"
  std::int64_t tokens = 0;
  std::int64_t queries = 0;  ///< 0 where no layer has queries
  int kv_heads = 0;
  int q_heads = 0;
  int head_dim = 0;
  std::vector<dump_layer> layers;

  /// Tokens that come before those of the queries: what a prefill would have seen.
  std::int64_t prefill() const noexcept { return tokens - queries; }
};

/// Checks the tensors of a file against one another and its metadata. Throws `tool_error` beginning
/// with `name`, which says what is missing or does not fit. The views live as long as the file.
dump read_dump(safetensors const& file, std::string_view name, dump_needs needs = {});

}  // namespace kvarts::tool
