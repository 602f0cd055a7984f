// SPDX-License-Identifier: Apache-2.0
#include "eval_json.hpp"

#include "measure_fields.hpp"

#include <nlohmann/json.hpp>

namespace kvarts::tool {

namespace {

using json = nlohmann::ordered_json;

json to_json(measures const& m) {
  json all = json::object();
  for (auto const& [name, value] : measure_fields) all[name] = m.*value;
  return all;
}

json to_json(layer_result const& of) {
  json layer = {{"layer", of.layer}};
  layer.update(to_json(of.values));
  return layer;
}

json to_json(preset_result const& p) {
  json preset = {{"preset", p.preset},
                 {"windows", p.windows},
                 {"bits", {{"k", p.bits.k}, {"v", p.bits.v}, {"mean", p.bits.mean}}},
                 {"layers", json::array()},
                 {"mean", to_json(p.mean)}};
  for (layer_result const& layer : p.layers) preset["layers"].push_back(to_json(layer));
  return preset;
}

}  // namespace

std::string eval_json(eval_result const& r) {
  json all = {{"dump", r.dump},
              {"model", r.model},
              {"text", r.text},
              {"tokens", r.tokens},
              {"queries", r.queries},
              {"q_heads", r.q_heads},
              {"kv_heads", r.kv_heads},
              {"head_dim", r.head_dim},
              {"calibration", r.calibration.empty() ? json() : json(r.calibration)},
              {"warnings", r.warnings},
              {"results", json::array()}};
  for (preset_result const& p : r.presets) all["results"].push_back(to_json(p));
  // File names need not be UTF-8.
  return all.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

}  // namespace kvarts::tool
