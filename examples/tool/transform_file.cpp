// SPDX-License-Identifier: Apache-2.0
#include "transform_file.hpp"

#include "layer_tensors.hpp"
#include "tool_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

namespace kvarts::tool {

namespace {

/// A number of the metadata, 1 where it is missing.
template <class Number>
Number metadata_number(safetensors const& contents, std::string_view key, Number most,
                       std::string_view name) {
  auto const found = contents.metadata.find(key);
  if (found == contents.metadata.end()) return 1;
  std::string const& text = found->second;
  Number number = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > most || number < 0) {
    throw tool_error(fmt::format("{}: metadata {} is {}, not a number from 0 to {}", name, key,
                                 in_quotes(text), most));
  }
  return number;
}

std::string metadata_text(safetensors const& contents, std::string_view key) {
  auto const found = contents.metadata.find(key);
  return found == contents.metadata.end() ? std::string() : found->second;
}

/// One part of a layer, or nothing; the first part gives the geometry, the second must have the
/// same.
std::vector<float> read_part(safetensors const& contents, int layer, std::string_view part,
                             transform& into, std::string_view name) {
  tensor const* const values = find_layer_tensor(contents, layer, part);
  if (values == nullptr) return {};
  auto const fail = [&](std::string const& what) {
    throw tool_error(fmt::format("{}: layer {}: the {} {}", name, layer, part, what));
  };
  auto const& shape = values->shape;
  if (values->dtype != file_dtype::f32) {
    fail(fmt::format("is {}, not F32", name_of(values->dtype)));
  }
  if (shape.size() != 2 || shape[0] < 1 || shape[0] > 65536 || shape[1] < 1 ||
      shape[1] > max_head_dim) {
    fail(fmt::format("has shape {}, not [kv_heads, head_dim]", to_string(shape)));
  }
  if (into.heads != 0 && (shape[0] != into.heads || shape[1] != into.head_dim)) {
    fail(fmt::format("has shape {}, but the other part [{}, {}]", to_string(shape), into.heads,
                     into.head_dim));
  }
  into.heads = static_cast<int>(shape[0]);
  into.head_dim = static_cast<int>(shape[1]);
  std::vector<float> floats(values->bytes.size() / sizeof(float));
  std::memcpy(floats.data(), values->bytes.data(), values->bytes.size());
  return floats;
}

std::set<int> layers_of(safetensors const& contents) {
  std::set<int> layers;
  for (char const* part : {"center", "norm"}) {
    for (int const layer : layers_with(contents, part)) layers.insert(layer);
  }
  return layers;
}

}  // namespace

bool is_transform_file(safetensors const& contents) { return !layers_of(contents).empty(); }

transform_file parse_transform_file(safetensors const& contents, std::string_view name) {
  transform_file file;
  file.rotate.rounds =
      metadata_number<std::int32_t>(contents, "rotation_rounds", max_rotation_rounds, name);
  file.rotate.seed = metadata_number<std::uint64_t>(
      contents, "rotation_seed", std::numeric_limits<std::uint64_t>::max(), name);
  file.rope = metadata_text(contents, "rope");
  file.model = metadata_text(contents, "model");
  for (int const layer : layers_of(contents)) {
    transform t;
    t.rotate = file.rotate;
    t.center = read_part(contents, layer, "center", t, name);
    t.norm = read_part(contents, layer, "norm", t, name);
    if (problem const p = check(t, t.heads, t.head_dim)) {
      throw tool_error(fmt::format("{}: layer {}: {}", name, layer, p.sentence()));
    }
    file.layers.emplace(layer, std::move(t));
  }
  if (file.layers.empty()) {
    throw tool_error(
        fmt::format("{}: not a transform file: it has no layers.{{i}}.center and no "
                    "layers.{{i}}.norm",
                    name));
  }
  return file;
}

transform_file read_transform_file(std::string const& path) {
  return parse_transform_file(open_safetensors(path).contents, path);
}

transform const& layer_of(transform_file const& file, int layer, std::string_view name) {
  auto const found = file.layers.find(layer);
  if (found != file.layers.end()) return found->second;
  std::vector<int> layers;
  for (auto const& [number, t] : file.layers) layers.push_back(number);
  throw tool_error(
      fmt::format("{}: no layer {}; there are {}", name, layer, fmt::join(layers, ", ")));
}

void write_transform_file(std::string const& path, transform_file const& file) {
  safetensors contents;
  contents.metadata = {{"rotation_rounds", std::to_string(file.rotate.rounds)},
                       {"rotation_seed", std::to_string(file.rotate.seed)}};
  if (!file.rope.empty()) contents.metadata["rope"] = file.rope;
  if (!file.model.empty()) contents.metadata["model"] = file.model;
  for (auto const& [layer, t] : file.layers) {
    auto const add = [&, number = layer](std::string_view part, std::vector<float> const& values,
                                         transform const& of) {
      if (values.empty()) return;
      contents.tensors[layer_tensor_name(number, part)] = {
          file_dtype::f32, {of.heads, of.head_dim}, std::as_bytes(std::span(values))};
    };
    add("center", t.center, t);
    add("norm", t.norm, t);
  }
  write_safetensors(path, contents);
}

}  // namespace kvarts::tool
