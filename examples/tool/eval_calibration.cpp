// SPDX-License-Identifier: Apache-2.0
#include "eval_calibration.hpp"

#include "tool_error.hpp"
#include "transform_file.hpp"

#include <kvarts/calibrate.hpp>

#include <fmt/format.h>

#include <map>
#include <utility>

namespace kvarts::tool {

namespace {

/// Metadata that both files have must agree.
void check_same(std::string_view what, std::string const& theirs, std::string const& ours,
                std::string_view name, dump const& of) {
  if (theirs.empty() || ours.empty() || theirs == ours) return;
  throw tool_error(fmt::format("{}: {} is {}, but that of {} is {}", name, what, in_quotes(theirs),
                               of.name, in_quotes(ours)));
}

/// The transform of one layer; `rows` views as many tokens as are to be used.
transform calibrate_layer(source_view keys, std::optional<source_view> const& queries) {
  calibrator layer(keys.map.heads, keys.map.head_dim);
  layer.add_keys(keys);
  if (queries) layer.add_queries(*queries);
  return layer.finish();
}

/// The transforms of another text's dump as a transform file would have them.
transform_file calibrate_dump(safetensors const& file, std::string_view name) {
  dump const text = read_dump(file, name, {.queries = false, .values = false});
  if (text.tokens <= calibration_skips) {
    throw tool_error(fmt::format("{}: {} tokens are too few: a calibration leaves out the first {}",
                                 name, text.tokens, calibration_skips));
  }
  transform_file result;
  result.model = text.model;
  result.rope = text.rope;
  for (dump_layer const& layer : text.layers) {
    result.layers.emplace(layer.layer, calibrate_layer(layer.k, layer.q));
  }
  return result;
}

}  // namespace

key_calibration calibrate_from(safetensors const& file, std::string_view name, dump const& of) {
  transform_file const transforms =
      is_transform_file(file) ? parse_transform_file(file, name) : calibrate_dump(file, name);
  check_same("its model", transforms.model, of.model, name, of);
  check_same("its RoPE pairing", transforms.rope, of.rope, name, of);
  key_calibration result;
  result.source = name;
  for (dump_layer const& layer : of.layers) {
    transform const& t = layer_of(transforms, layer.layer, name);
    if (problem const p = check(t, of.kv_heads, of.head_dim)) {
      throw tool_error(fmt::format("{}: layer {}: {}", name, layer.layer, p.sentence()));
    }
    result.layers.push_back(t);
  }
  return result;
}

key_calibration calibrate_from_prefill(dump const& of) {
  key_calibration result;
  for (dump_layer const& layer : of.layers) {
    source_view prefill = layer.k;
    prefill.map.tokens = of.prefill();
    result.layers.push_back(calibrate_layer(prefill, layer.q));
  }
  if (of.prefill() <= calibration_skips) {
    result.warnings.push_back(
        fmt::format("Only {} tokens come before the queries, too few to estimate center and norm "
                    "of keys: the calibrated presets only rotate.",
                    of.prefill()));
  }
  return result;
}

}  // namespace kvarts::tool
