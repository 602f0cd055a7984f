// SPDX-License-Identifier: Apache-2.0
#include "eval_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

namespace kvarts::tool {

namespace {

/// Bits are sums of a few parts; presets at the same bits must compare equal.
constexpr double same_bits = 1e-9;

double worst_head(layer_result const& of) {
  double worst = of.values.attention_kl;
  for (double const kl : of.kl_of_heads) worst = std::isnan(kl) ? kl : std::max(worst, kl);
  return worst;
}

/// Not a number is not safe.
bool safe(layer_result const& of) { return worst_head(of) <= unsafe_kl; }

layer_result const* find_layer(preset_result const& p, int layer) {
  auto const found = std::find_if(p.layers.begin(), p.layers.end(),
                                  [&](layer_result const& l) { return l.layer == layer; });
  return found == p.layers.end() ? nullptr : &*found;
}

bool safe_everywhere(preset_result const& p) {
  return std::all_of(p.layers.begin(), p.layers.end(), safe);
}

bool within(budget const& limits, preset_result const& p) {
  if (!limits.max_bits && !limits.max_kl) return safe_everywhere(p);
  return (!limits.max_bits || p.bits.mean <= *limits.max_bits + same_bits) &&
         (!limits.max_kl || p.mean.attention_kl <= *limits.max_kl);
}

/// Largest mean of a channel against the usual deviation of one.
double offset_of(channel_profile const& head) {
  double mean = 0;
  double squares = 0;
  for (double const m : head.mean_before) mean = std::max(mean, std::fabs(m));
  for (double const d : head.rms_before) squares += d * d;
  double const deviation = std::sqrt(squares / static_cast<double>(head.rms_before.size()));
  return deviation > 0 ? mean / deviation : 0;
}

bool has_constant_channels(eval_result const& r, int layer, std::vector<int> const& kv_heads) {
  return std::any_of(r.channels.begin(), r.channels.end(), [&](channel_profile const& head) {
    bool const meant = std::find(kv_heads.begin(), kv_heads.end(), head.kv_head) != kv_heads.end();
    return head.layer == layer && meant && offset_of(head) > constant_channel;
  });
}

/// Presets that were measured with these windows, well, and `fit`, the least key first.
template <class Fit, class Key>
std::vector<std::size_t> ranked(eval_result const& r, std::string const& windows, Fit fit,
                                Key key) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < r.presets.size(); ++i) {
    preset_result const& p = r.presets[i];
    bool const measured = std::isfinite(p.bits.mean) && std::isfinite(p.mean.output_rel_err);
    if (p.windows == windows && measured && fit(p)) all.push_back(i);
  }
  std::stable_sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
    return key(r.presets[a]) < key(r.presets[b]);
  });
  return all;
}

/// A preset that is safe in a layer: the most exact one in these bits, else the smallest one.
std::optional<std::size_t> cure_of(eval_result const& r, preset_result const& of, int layer) {
  auto const first = [&](double max_bits, auto key) -> std::optional<std::size_t> {
    auto const all = ranked(
        r, of.windows,
        [&](preset_result const& p) {
          auto const* const there = find_layer(p, layer);
          return p.bits.mean <= max_bits + same_bits && there != nullptr && safe(*there);
        },
        key);
    if (all.empty()) return {};
    return all.front();
  };
  auto const cure = first(of.bits.mean, [&](preset_result const& p) {
    return std::tuple(find_layer(p, layer)->values.attention_kl, p.bits.mean);
  });
  if (cure) return cure;
  return first(HUGE_VAL, [&](preset_result const& p) {
    return std::tuple(p.bits.mean, find_layer(p, layer)->values.attention_kl);
  });
}

void add_unsafe_places(eval_choice& choice, eval_result const& r, std::size_t preset) {
  preset_result const& p = r.presets[preset];
  for (layer_result const& layer : p.layers) {
    if (safe(layer)) continue;
    unsafe_place place{
        preset, layer.layer, {}, worst_head(layer), false, cure_of(r, p, layer.layer)};
    for (std::size_t h = 0; h < layer.kl_of_heads.size(); ++h) {
      if (!(layer.kl_of_heads[h] <= unsafe_kl)) place.kv_heads.push_back(static_cast<int>(h));
    }
    place.constant_channels =
        !p.bears_offsets && has_constant_channels(r, layer.layer, place.kv_heads);
    choice.unsafe.push_back(place);
  }
}

std::string figures(preset_result const& p) {
  return fmt::format("{:.3f} bits, KL {:.3g} nats, output error {:.3g}", p.bits.mean,
                     p.mean.attention_kl, p.mean.output_rel_err);
}

std::string budget_text(budget const& limits) {
  std::vector<std::string> parts;
  if (limits.max_bits) parts.push_back(fmt::format("{:g} bits", *limits.max_bits));
  if (limits.max_kl) parts.push_back(fmt::format("a KL of {:g} nats", *limits.max_kl));
  return fmt::format("{}", fmt::join(parts, " and "));
}

std::string verdict(eval_choice const& c, eval_result const& r) {
  std::string const limits = budget_text(r.limits);
  if (c.ranking.empty()) {
    return limits.empty() ? fmt::format(
                                "No preset here is safe in every layer and KV head (KL of "
                                "at most {:g} nats).",
                                unsafe_kl)
                          : fmt::format("No preset here stays within {}.", limits);
  }
  preset_result const& best = r.presets[c.ranking.front()];
  std::string text =
      limits.empty()
          ? fmt::format(
                "Take {}: it has the fewest bits of those that are safe in every layer and "
                "KV head",
                best.preset)
          : fmt::format("Within {} take {}", limits, best.preset);
  text += fmt::format(
      " ({}; means over {} with windows {}).", figures(best),
      best.layers.size() == 1 ? "one layer" : fmt::format("{} layers", best.layers.size()),
      c.windows);
  if (c.ranking.size() > 1) {
    preset_result const& next = r.presets[c.ranking[1]];
    text += fmt::format(" Next comes {} ({}).", next.preset, figures(next));
  }
  for (layer_override const& o : c.overrides) {
    text += fmt::format(" Layer {} is better off with {} ({:.3f} bits).", o.layer,
                        r.presets[o.preset].preset, r.presets[o.preset].bits.mean);
  }
  return text;
}

std::string warning(unsafe_place const& place, eval_result const& r) {
  preset_result const& p = r.presets[place.preset];
  std::string text = fmt::format("{} is unsafe in layer {}", p.preset, place.layer);
  if (!place.kv_heads.empty()) {
    text += fmt::format(", KV head{} {}", place.kv_heads.size() == 1 ? "" : "s",
                        fmt::join(place.kv_heads, ", "));
  }
  text += fmt::format(" (KL {:.3g} nats)", place.kl);
  if (place.constant_channels) text += ": its keys have constant channels and keep their center";
  if (!place.cure) return text + ".";
  preset_result const& cure = r.presets[*place.cure];
  std::string_view const bits = std::fabs(cure.bits.mean - p.bits.mean) <= same_bits
                                    ? "at the same bits"
                                : cure.bits.mean < p.bits.mean ? "in fewer bits"
                                                               : "in more bits";
  return text + fmt::format("; {} has {:.3g} there {}.", cure.preset,
                            worst_head(*find_layer(cure, place.layer)), bits);
}

}  // namespace

eval_choice choose(eval_result const& r) {
  eval_choice choice;
  bool const on = std::any_of(r.presets.begin(), r.presets.end(),
                              [](preset_result const& p) { return p.windows == "on"; });
  choice.windows = on ? "on" : "off";
  choice.ranking = ranked(
      r, choice.windows, [&](preset_result const& p) { return within(r.limits, p); },
      [&](preset_result const& p) {
        double const bits = r.limits.max_bits ? 0 : p.bits.mean;
        return std::tuple(bits, p.mean.output_rel_err, p.bits.mean);
      });
  for (std::size_t i = 0; i < r.presets.size(); ++i) {
    if (r.presets[i].windows == choice.windows) add_unsafe_places(choice, r, i);
  }
  for (unsafe_place const& place : choice.unsafe) {
    if (choice.ranking.empty() || place.preset != choice.ranking.front() || !place.cure) {
      continue;
    }
    choice.overrides.push_back({place.layer, *place.cure});
  }
  return choice;
}

std::vector<std::string> sentences_of(eval_choice const& choice, eval_result const& result) {
  std::vector<std::string> sentences{verdict(choice, result)};
  for (unsafe_place const& place : choice.unsafe) sentences.push_back(warning(place, result));
  return sentences;
}

}  // namespace kvarts::tool
