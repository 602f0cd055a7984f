// SPDX-License-Identifier: Apache-2.0
#include "preset_file.hpp"

#include "file.hpp"
#include "json_fields.hpp"
#include "tool_error.hpp"
#include "unknown_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>

namespace kvarts::tool {

namespace {

using json = nlohmann::json;

constexpr int usual_group = 32;
constexpr std::int64_t max_group = 65536;

std::map<std::string, key_transform> const key_transforms = {
    {"none", key_transform::none},
    {"innerq", key_transform::innerq},
    {"calibrated", key_transform::calibrated},
    {"turned", key_transform::turned},
    {"calibrated_turned", key_transform::calibrated_turned}};

std::map<std::string, value_transform> const value_transforms = {
    {"none", value_transform::none},
    {"rotated", value_transform::rotated},
    {"turned", value_transform::turned}};

template <class Value>
std::vector<std::string> names_of(std::map<std::string, Value> const& values) {
  std::vector<std::string> names;
  for (auto const& [name, value] : values) names.push_back(name);
  return names;
}

axis axis_of(json_fields const& side) {
  std::string const along = side.text("along");
  for (axis const a : {axis::row, axis::channel, axis::token}) {
    if (along == to_string(a)) return a;
  }
  side.fail(fmt::format("has {} as \"along\", not row, channel or token", in_quotes(along)));
}

template <class Transform>
coding<Transform> read_side(json const& from, std::string where,
                            std::map<std::string, Transform> const& transforms) {
  json_fields const side(from, std::move(where));
  side.allow({"codec", "along", "group", "transform"});
  std::string const name = side.text("codec");
  auto const known = codec_names();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw tool_error(fmt::format("{}: {}", side.where(),
                                 unknown_name("codec", name, known, "`kvarts codecs` lists them")));
  }
  coding<Transform> result;
  result.codec = find_codec(name, axis::row);
  bool const rows = result.codec != nullptr;
  std::optional<axis> along;
  if (side.has("along")) along = axis_of(side);
  if (rows && (side.has("group") || along.value_or(axis::row) != axis::row)) {
    side.fail(fmt::format("groups {}, which takes a scale a row", name));
  }
  if (!rows) {
    if (!along || *along == axis::row) {
      side.fail(fmt::format("has to say whether {} lies \"along\" channel or token", name));
    }
    result.codec = find_codec(name, *along);
    result.group = static_cast<int>(side.number("group", 1, max_group, usual_group));
  }
  if (!side.has("transform")) return result;
  std::string const transform = side.text("transform");
  auto const found = transforms.find(transform);
  if (found == transforms.end()) {
    auto const names = names_of(transforms);
    throw tool_error(fmt::format("{}: unknown transform {}; here it is one of {}", side.where(),
                                 in_quotes(transform), fmt::join(names, ", ")));
  }
  result.transform = found->second;
  return result;
}

windows read_windows(json const& from, std::string where) {
  json_fields const window(from, std::move(where));
  window.allow({"sink", "recent"});
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() / 4;
  return {static_cast<int>(window.number("sink", 0, most, 0)),
          static_cast<int>(window.number("recent", 0, most, 0))};
}

template <class Transform>
void check_window(windows w, coding<Transform> const& c, std::string const& where) {
  if (problem const p = check(w, c.codec->info().grouped_along, c.group)) {
    throw tool_error(fmt::format("{}: {}", where, p.sentence()));
  }
}

runtime_preset read_preset(json const& from, std::string const& file) {
  json_fields const all(from, file + ": a preset");
  all.allow({"name", "keys", "values", "windows"});
  runtime_preset preset;
  preset.name = all.text("name");
  if (visit_preset(preset.name, [](auto const&) {})) {
    throw tool_error(
        fmt::format("{}: {} is a shipped preset; name yours otherwise", file, preset.name));
  }
  std::string const where = fmt::format("{}: preset {}", file, in_quotes(preset.name));
  preset.keys = read_side(all.at("keys"), where + ": keys", key_transforms);
  preset.values = read_side(all.at("values"), where + ": values", value_transforms);
  if (all.has("windows")) preset.window = read_windows(all.at("windows"), where + ": windows");
  check_window(preset.window, preset.keys, where + ": keys");
  check_window(preset.window, preset.values, where + ": values");
  return preset;
}

}  // namespace

std::vector<runtime_preset> parse_presets(std::string_view text, std::string_view name) {
  std::string const file(name);
  json const all = json::parse(text.begin(), text.end(), nullptr, false);
  if (all.is_discarded()) throw tool_error(file + ": this is no JSON");
  if (!all.is_array()) return {read_preset(all, file)};
  std::vector<runtime_preset> presets;
  for (json const& one : all) {
    runtime_preset preset = read_preset(one, file);
    for (runtime_preset const& other : presets) {
      if (other.name != preset.name) continue;
      throw tool_error(fmt::format("{}: preset {} comes twice", file, in_quotes(preset.name)));
    }
    presets.push_back(std::move(preset));
  }
  if (presets.empty()) throw tool_error(file + ": there is no preset in it");
  return presets;
}

std::vector<runtime_preset> read_presets(std::string const& path) {
  auto const parse = [](std::span<std::byte const> bytes, std::string_view name) {
    constexpr std::size_t most = 1 << 20;
    if (bytes.size() > most) {
      throw tool_error(fmt::format("{}: {} bytes are too many for presets", name, bytes.size()));
    }
    return parse_presets({reinterpret_cast<char const*>(bytes.data()), bytes.size()}, name);
  };
  return open_with(parse, path).contents;
}

}  // namespace kvarts::tool
