// SPDX-License-Identifier: Apache-2.0
#include "dump.hpp"

#include "layer_tensors.hpp"
#include "tensor_input.hpp"
#include "tool_error.hpp"

#include <kvarts/rows.hpp>

#include <fmt/format.h>

#include <array>
#include <set>
#include <utility>

namespace kvarts::tool {

namespace {

/// Reads one file; keeps its name for the sentences.
class dump_reader {
 public:
  dump_reader(safetensors const& file, std::string_view name) : file_(file), name_(name) {}

  dump read(dump_needs needs) const {
    dump result;
    result.name = name_;
    result.model = metadata("model");
    result.text = metadata("text");
    result.rope = metadata("rope");
    for (int const layer : layers()) result.layers.push_back(read_layer(layer, needs));
    describe(result);
    for (dump_layer const& layer : result.layers) check_alike(result.layers.front(), layer);
    check_metadata("tokens", result.tokens);
    if (result.queries > 0) check_metadata("queries", result.queries);
    return result;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw tool_error(name_ + ": " + fmt::format(text, std::forward<Args>(args)...));
  }

  std::string metadata(std::string_view key) const {
    auto const found = file_.metadata.find(key);
    return found == file_.metadata.end() ? std::string{} : found->second;
  }

  /// Numbers of all layers with a tensor k, q or v.
  std::set<int> layers() const {
    std::set<int> found;
    for (char const* part : {"k", "q", "v"}) {
      for (int const layer : layers_with(file_, part)) found.insert(layer);
    }
    if (found.empty()) fail("no tensors layers.0.k, layers.0.q, ...: this is no dump");
    return found;
  }

  dump_layer read_layer(int layer, dump_needs needs) const {
    dump_layer result;
    result.layer = layer;
    result.k = *read_rows(layer, "k", true);
    result.q = read_rows(layer, "q", needs.queries);
    result.v = read_rows(layer, "v", needs.values);
    if (result.q) check_queries(layer, result.k.map, result.q->map);
    return result;
  }

  /// A tensor `[tokens, heads, head_dim]`.
  std::optional<source_view> read_rows(int layer, std::string_view part, bool needed) const {
    std::string const name = layer_tensor_name(layer, part);
    tensor const* const values = find_layer_tensor(file_, layer, part);
    if (values == nullptr) {
      if (!needed) return std::nullopt;
      fail("{} is missing", name);
    }
    if (values->shape.size() != 3) {
      fail("{} has shape {}, not [tokens, heads, head_dim]", name, to_string(values->shape));
    }
    source_view const rows = rows_of(*values, fmt::format("{}: {}", name_, name));
    if (rows.map.tokens == 0) fail("{} has no tokens", name);
    check_finite(name, rows);
    return rows;
  }

  void check_finite(std::string const& name, source_view const& rows) const {
    float row[max_head_dim];
    for (std::int64_t t = 0; t < rows.map.tokens; ++t) {
      for (int h = 0; h < rows.map.heads; ++h) {
        if (detail::load_finite(rows, h, t, row) == 0) continue;
        fail("{} has a NaN or an infinity in row {} of head {}", name, t, h);
      }
    }
  }

  void check_queries(int layer, layout const& k, layout const& q) const {
    if (q.head_dim != k.head_dim) {
      fail("layers.{}.q has head_dim {} where layers.{}.k has {}", layer, q.head_dim, layer,
           k.head_dim);
    }
    if (q.heads % k.heads != 0) {
      fail("layers.{}.q has {} heads, no multiple of the {} KV heads", layer, q.heads, k.heads);
    }
    if (q.tokens > k.tokens) {
      fail("layers.{}.q has {} queries for only {} tokens", layer, q.tokens, k.tokens);
    }
  }

  void describe(dump& result) const {
    dump_layer const& first = result.layers.front();
    result.tokens = first.k.map.tokens;
    result.kv_heads = first.k.map.heads;
    result.head_dim = first.k.map.head_dim;
    if (!first.q) return;
    result.queries = first.q->map.tokens;
    result.q_heads = first.q->map.heads;
  }

  void check_alike(dump_layer const& first, dump_layer const& layer) const {
    check_shape(layer.layer, "k", layer.k.map, first.layer, "k", first.k.map);
    if (layer.v) check_shape(layer.layer, "v", layer.v->map, first.layer, "k", first.k.map);
    if (layer.q.has_value() != first.q.has_value()) {
      fail("only one of layers {} and {} has queries", first.layer, layer.layer);
    }
    if (layer.q) check_shape(layer.layer, "q", layer.q->map, first.layer, "q", first.q->map);
  }

  void check_shape(int layer, char const* part, layout const& is, int of_layer, char const* of_part,
                   layout const& expected) const {
    auto const shape = [](layout const& m) {
      return std::array<std::int64_t, 3>{m.tokens, m.heads, m.head_dim};
    };
    if (shape(is) == shape(expected)) return;
    fail("layers.{}.{} has shape {} where layers.{}.{} has {}", layer, part, to_string(shape(is)),
         of_layer, of_part, to_string(shape(expected)));
  }

  void check_metadata(std::string_view key, std::int64_t actual) const {
    std::string const stated = metadata(key);
    if (stated.empty() || stated == std::to_string(actual)) return;
    fail("metadata says {} {} where the tensors have {}", in_quotes(stated), key, actual);
  }

  safetensors const& file_;
  std::string name_;
};

}  // namespace

dump read_dump(safetensors const& file, std::string_view name, dump_needs needs) {
  return dump_reader(file, name).read(needs);
}

}  // namespace kvarts::tool
