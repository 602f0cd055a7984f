// SPDX-License-Identifier: Apache-2.0
#include "host_tier.hpp"

namespace kvarts::adapters {

namespace {

/// What of a preset a tier takes: no windows, since a tier holds what was evicted.
struct chosen_preset {
  codec_info keys{}, values{};
  key_transform key_way = key_transform::none;
  value_transform value_way = value_transform::none;
};

bool is_built(codec_info const& c) {
  return tier::detail::find_coder(coders, {c, 1, 0}) != nullptr;
}

chosen_preset preset_named(std::string const& name) {
  chosen_preset chosen;
  bool const known = visit_preset(name, [&](auto const& p) {
    using preset_type = std::remove_cvref_t<decltype(p)>;
    chosen = {info_of<typename preset_type::key_codec>(),
              info_of<typename preset_type::value_codec>(), p.keys, p.values};
  });
  if (!known) throw error(status::bad_preset, "there is no preset '" + name + "'");
  bool const from_rows = needs_data(chosen.key_way) && !needs_calibration(chosen.key_way);
  if (!is_built(chosen.keys) || !is_built(chosen.values) || from_rows) {
    throw error(status::bad_preset, "preset '" + name + "' is not among those of this tier");
  }
  return chosen;
}

}  // namespace

host_tier::host_tier(tier_options const& o)
    : source_(o.source), threads_(o.threads), model_(o.model) {
  chosen_preset const p = preset_named(o.preset);
  geometry_ = tier::uniform_geometry(o.layers, o.heads, tier::segment{p.keys, o.head_dim, 0},
                                     tier::segment{p.values, o.head_dim, 0});
  geometry_.page_tokens = o.page_tokens;
  geometry_.alignment = o.alignment;
  geometry_.placement = o.layout;
  throw_if(tier::check(geometry_));
  throw_if(tier::check_threads(o.threads));
  if (needs_calibration(p.key_way)) {
    if (o.center == nullptr || o.norm == nullptr) {
      throw error(status::bad_transform,
                  "preset '" + o.preset + "' needs the center and the norm of a calibration");
    }
    copy_calibration(o);
  }
  for (int layer = 0; layer < o.layers; ++layer) {
    std::int64_t const at = std::int64_t{layer} * o.heads * o.head_dim;
    key_transforms_.push_back({center_.empty() ? nullptr : center_.data() + at,
                               norm_.empty() ? nullptr : norm_.data() + at, o.head_dim,
                               key_rotation(p.key_way)});
    value_transforms_.push_back({nullptr, nullptr, 0, value_rotation(p.value_way)});
  }
  throw_if(tier::check({geometry_, source_, key_transforms_, value_transforms_, model_}));
}

void host_tier::copy_calibration(tier_options const& o) {
  auto const count = static_cast<std::size_t>(o.layers) * static_cast<std::size_t>(o.heads) *
                     static_cast<std::size_t>(o.head_dim);
  center_.assign(o.center, o.center + count);
  norm_.assign(o.norm, o.norm + count);
}

tier::geometry host_tier::chunk_geometry(std::int32_t tokens) const {
  tier::geometry g = geometry_;
  g.record = tier::record_kind::page;
  g.placement = tier::host_layout::page_first_direct;
  g.page_tokens = tokens;
  throw_if(tier::check(g));
  return g;
}

}  // namespace kvarts::adapters
