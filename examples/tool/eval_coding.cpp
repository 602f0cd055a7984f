// SPDX-License-Identifier: Apache-2.0
#include "eval_coding.hpp"

#include "tool_error.hpp"
#include "unknown_name.hpp"

#include <kvarts/tensor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvarts::tool {

namespace {

void require(status s) {
  if (s != status::ok) throw error(s, fmt::format("rows cannot be coded: {}", to_string(s)));
}

/// Encodes with one transform and decodes with another, which takes back none or all of it.
std::vector<float> recode(codec_ops const& codec, int group, source_view rows,
                          transform_view const& there, transform_view const& back) {
  int const heads = rows.map.heads;
  int const head_dim = rows.map.head_dim;
  std::int64_t const tokens = rows.map.tokens;
  layout const map = tiles_of(codec, group, heads, head_dim, tokens);
  std::vector<std::byte> memory(static_cast<std::size_t>(map.size_bytes()));
  std::vector<float> decoded(static_cast<std::size_t>(tokens * heads * head_dim));
  auto const target = make_tensor(decoded.data(), heads, head_dim, tokens, order::head_major);
  require(codec.encode({memory.data(), map}, rows, {0, tokens}, there).code);
  require(codec.decode({memory.data(), map}, target, {0, tokens}, back));
  return decoded;
}

/// The place of an item in a list of different ones, where it is put unless it is there.
template <class Item>
std::size_t place_of(Item const& item, std::vector<Item>& list) {
  auto const found = std::find(list.begin(), list.end(), item);
  auto const place = static_cast<std::size_t>(found - list.begin());
  if (found == list.end()) list.push_back(item);
  return place;
}

template <class Codec, class Transform>
coding<Transform> coding_of(Transform before) {
  return {find_codec(std::string_view(Codec::name()), Codec::grouped_along), Codec::group, before};
}

template <class Transform>
double bits_of(coding<Transform> const& c, int head_dim) {
  return tiles_of(*c.codec, c.group, 1, head_dim, 1).effective_bits();
}

/// Whether constant channels do no harm: their center is taken off, or each has its own scales.
bool bears_offsets(key_coding const& keys) {
  return needs_calibration(keys.transform) || keys.codec->info().grouped_along == axis::token;
}

void add(eval_plan& plan, runtime_preset const& preset, bool windows_on, int head_dim) {
  double const k = bits_of(preset.keys, head_dim);
  double const v = bits_of(preset.values, head_dim);
  key_reading const reading{place_of(preset.keys, plan.keys),
                            windows_on ? preset.window : windows{}};
  coding_pair const pair{place_of(reading, plan.readings), place_of(preset.values, plan.values)};
  plan.presets.push_back({preset.name,
                          windows_on,
                          bears_offsets(preset.keys),
                          {k, v, (k + v) / 2},
                          place_of(pair, plan.pairs)});
}

template <class KeyCodec, class ValueCodec>
runtime_preset shipped(scheme<KeyCodec, ValueCodec> const& preset) {
  return {std::string(preset.name), coding_of<KeyCodec>(preset.keys),
          coding_of<ValueCodec>(preset.values), preset.window};
}

}  // namespace

std::vector<float> recode(codec_ops const& codec, int group, source_view rows,
                          transform_view const& transform) {
  return recode(codec, group, rows, transform, transform);
}

std::vector<float> coded_space(source_view rows, transform_view const& transform) {
  return recode(*find_codec(identity<half>::name(), axis::row), 0, rows, transform, {});
}

eval_plan plan_presets(std::vector<std::string> const& names, std::vector<runtime_preset> own,
                       windows_choice choice, int head_dim) {
  std::vector<runtime_preset> all;
  for_each_preset([&](auto const& preset) { all.push_back(shipped(preset)); });
  for (runtime_preset& preset : own) all.push_back(std::move(preset));
  std::vector<std::string> known;
  for (runtime_preset const& preset : all) known.push_back(preset.name);
  std::vector<std::size_t> chosen;
  for (std::string const& name : names.empty() ? known : names) {
    auto const found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      throw tool_error(unknown_name("preset", name, known, "`kvarts codecs` lists them"), 2);
    }
    place_of(static_cast<std::size_t>(found - known.begin()), chosen);
  }
  eval_plan plan;
  for (bool const on : {false, true}) {
    if (choice == (on ? windows_choice::off : windows_choice::on)) continue;
    for (std::size_t const i : chosen) add(plan, all[i], on, head_dim);
  }
  return plan;
}

}  // namespace kvarts::tool
