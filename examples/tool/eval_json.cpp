// SPDX-License-Identifier: Apache-2.0
#include "eval_json.hpp"

#include "eval_choice.hpp"
#include "measure_fields.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

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
  layer["attention_kl_of_kv_heads"] = of.kl_of_heads;
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

json number_or_null(std::optional<double> x) { return x ? json(*x) : json(); }

json to_json(unsafe_place const& place, eval_result const& r) {
  json cure;
  if (place.cure) cure = r.presets[*place.cure].preset;
  return {{"preset", r.presets[place.preset].preset},
          {"layer", place.layer},
          {"kv_heads", place.kv_heads},
          {"attention_kl", place.kl},
          {"constant_channels", place.constant_channels},
          {"cure", cure}};
}

json to_json(eval_choice const& choice, eval_result const& r) {
  std::vector<std::string> ranking;
  for (std::size_t const i : choice.ranking) ranking.push_back(r.presets[i].preset);
  json all = {{"windows", choice.windows},
              {"max_bits", number_or_null(r.limits.max_bits)},
              {"max_kl", number_or_null(r.limits.max_kl)},
              {"unsafe_kl", unsafe_kl},
              {"preset", ranking.empty() ? json() : json(ranking.front())},
              {"ranking", ranking},
              {"overrides", json::array()},
              {"unsafe", json::array()},
              {"text", sentences_of(choice, r).front()}};
  for (layer_override const& o : choice.overrides) {
    all["overrides"].push_back({{"layer", o.layer}, {"preset", r.presets[o.preset].preset}});
  }
  for (unsafe_place const& place : choice.unsafe) all["unsafe"].push_back(to_json(place, r));
  return all;
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
  all["choice"] = to_json(choose(r), r);
  // File names need not be UTF-8.
  return all.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

}  // namespace kvarts::tool
