// SPDX-License-Identifier: Apache-2.0
#include "eval.hpp"

#include "eval_coding.hpp"
#include "eval_layer.hpp"
#include "measure_fields.hpp"
#include "parallel.hpp"
#include "progress.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace kvarts::tool {

namespace {

eval_result describe(dump const& of, key_calibration const& calibration, eval_plan const& plan) {
  eval_result result;
  result.dump = of.name;
  result.model = of.model;
  result.text = of.text;
  result.tokens = static_cast<int>(of.tokens);
  result.queries = static_cast<int>(of.queries);
  result.q_heads = of.q_heads;
  result.kv_heads = of.kv_heads;
  result.head_dim = of.head_dim;
  result.calibration = calibration.source;
  result.warnings = calibration.warnings;
  for (planned_preset const& p : plan.presets) {
    result.presets.push_back(
        {p.name, p.windows_on ? "on" : "off", p.bits, {}, {}, p.bears_offsets});
  }
  return result;
}

measures mean_of(std::vector<layer_result> const& layers) {
  measures mean;
  for (auto const& [name, value] : measure_fields) {
    for (layer_result const& layer : layers) mean.*value += layer.values.*value;
    mean.*value /= static_cast<double>(layers.size());
  }
  return mean;
}

}  // namespace

eval_result evaluate(dump const& of, key_calibration const& calibration,
                     eval_options const& options) {
  eval_plan const plan = plan_presets(options.presets, options.own, options.windows, of.head_dim);
  eval_result result = describe(of, calibration, plan);
  result.limits = options.limits;
  if (of.prefill() == 0) {
    result.warnings.push_back("No token comes before the queries: InnerQ's norms are all 1.");
  }
  std::size_t const layers = of.layers.size();
  std::optional<progress> bar;
  for (std::size_t i = 0; i < layers; ++i) {
    layer_evaluation layer(of, of.layers[i], calibration.layers[i], plan);
    if (!bar) {
      bar.emplace("evaluating",
                  static_cast<std::int64_t>(layers * (layer.codings() + layer.blocks())));
    }
    auto const done = [&] { bar->advance(); };
    for_each_index(
        layer.codings(), options.threads, [&](std::size_t c) { layer.code(c); }, done);
    for_each_index(
        layer.blocks(), options.threads, [&](std::size_t b) { layer.attend(b); }, done);
    layer.report(result);
  }
  for (preset_result& p : result.presets) p.mean = mean_of(p.layers);
  return result;
}

}  // namespace kvarts::tool
