// SPDX-License-Identifier: Apache-2.0
#include "tier/plan.hpp"

#include "unknown_name.hpp"

#include <kvarts/scheme.hpp>

#include <type_traits>

namespace kvarts::tool {

namespace {

constexpr codec_info plain = info_of<identity<bfloat16>>();

/// What is wrong with a plan; the geometry can only be made once the ranks fit.
problem check_plan(model_shape const& model, codec_pair const& codecs, tier_form const& form,
                   std::int64_t budget) {
  if (auto const p = tier::check_ranks(model.kv_heads, form.ranks)) return p;
  tier::geometry const g = geometry_of(model, codecs, form);
  if (auto const p = tier::check(g)) return p;
  return tier::check_budget(g, budget);
}

/// The same tier with so many of its layers.
tier::geometry with_layers(tier::geometry g, int layers) {
  g.layers = layers;
  return g;
}

}  // namespace

std::vector<codec_pair> const& preset_pairs() {
  static std::vector<codec_pair> const pairs = [] {
    std::vector<codec_pair> all;
    for_each_preset([&](auto const& preset) {
      using preset_type = std::remove_cvref_t<decltype(preset)>;
      all.push_back({std::string(preset.name), info_of<typename preset_type::key_codec>(),
                     info_of<typename preset_type::value_codec>()});
    });
    return all;
  }();
  return pairs;
}

codec_pair const& find_pair(std::string_view name) {
  return find_named(preset_pairs(), "preset", name, "`kvarts codecs` lists them");
}

tier::geometry geometry_of(model_shape const& model, codec_pair const& codecs,
                           tier_form const& form) {
  tier::segment const keys{codecs.keys, model.head_dim};
  tier::geometry g =
      model.is_latent()
          ? tier::uniform_geometry(model.layers, 1, {keys, {plain, model.rope_dim}}, {})
          : tier::uniform_geometry(model.layers, tier::local_heads(model.kv_heads, form.ranks),
                                   keys, tier::segment{codecs.values, model.head_dim});
  g.record = form.record;
  g.page_tokens = form.page_tokens;
  g.alignment = form.alignment;
  g.placement = form.placement;
  return g;
}

plan_line plan_for(model_shape const& model, codec_pair const& codecs, tier_form const& form,
                   std::int64_t budget) {
  plan_line line;
  line.codec = codecs.name;
  if (problem const p = check_plan(model, codecs, form, budget)) {
    line.refusal = p.sentence();
    return line;
  }
  tier::geometry const g = geometry_of(model, codecs, form);
  line.bytes_per_token = bytes_per_token(g);
  line.bytes_per_page = bytes_per_page(g);
  line.strict = capacity_for(g, budget);
  line.sglang = capacity_for(g, budget, tier::capacity_rule::sglang);
  tier_form tight = form;
  tight.alignment = 1;
  std::int64_t const plain_page = bytes_per_page(geometry_of(model, {"", plain, plain}, tight));
  line.share = static_cast<double>(line.bytes_per_page) / static_cast<double>(plain_page);
  if (model.window_layers > 0) {
    auto const pages = ceil_div(model.window, g.page_tokens);
    line.full_layer_bytes = bytes_per_token(with_layers(g, g.layers - model.window_layers));
    line.window_bytes = pages * bytes_per_page(with_layers(g, model.window_layers));
  }
  return line;
}

}  // namespace kvarts::tool
