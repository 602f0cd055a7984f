// SPDX-License-Identifier: Apache-2.0
#include "c_api.h"

#include "c_guard.hpp"

namespace kvarts::adapters {

std::string& last_error() noexcept {
  thread_local std::string text;
  return text;
}

namespace {

tier_options options_of(kvarts_tier_options const* o) {
  require(o != nullptr && o->preset != nullptr, "options and their preset are needed");
  if (o->layout < 0 || o->layout >= std::ssize(tier::host_layouts)) {
    throw_if({status::unsupported, "layout is {}, not 0 to {}", o->layout,
              std::ssize(tier::host_layouts) - 1});
  }
  if (o->source < 0 || o->source > 2) {
    throw_if({status::unsupported, "source is {}, not 0 to {}", o->source, 2});
  }
  tier_options t;
  t.preset = o->preset;
  t.model = o->model != nullptr ? o->model : "";
  t.layers = o->layers;
  t.heads = o->heads;
  t.head_dim = o->head_dim;
  t.page_tokens = o->page_tokens;
  t.alignment = o->alignment;
  t.layout = tier::host_layouts[static_cast<std::size_t>(o->layout)];
  t.source = static_cast<dtype>(o->source);
  t.threads = o->threads;
  t.center = o->center;
  t.norm = o->norm;
  return t;
}

}  // namespace

}  // namespace kvarts::adapters

using namespace kvarts::adapters;

char const* kvarts_last_error() { return last_error().c_str(); }

kvarts_tier* kvarts_tier_create(kvarts_tier_options const* options) {
  return guarded<kvarts_tier*>(nullptr,
                               [&] { return new kvarts_tier{host_tier(options_of(options))}; });
}

void kvarts_tier_destroy(kvarts_tier* tier) { delete tier; }
