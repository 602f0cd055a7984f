// SPDX-License-Identifier: Apache-2.0
// `kvarts codecs`: what there is to choose from.
#include "codec_ops.hpp"
#include "commands.hpp"
#include "table.hpp"

#include <kvarts/scheme.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace kvarts::tool {

namespace {

using json = nlohmann::ordered_json;

constexpr int usual_group = 32;

/// Bits a number, parameters included, from the layout of head tiles.
double bits_of(codec_ops const& codec, int group, int head_dim) {
  return tiles_of(codec, group, 1, head_dim, 1).effective_bits();
}

/// A codec, and its effective bits under each axis that it can be grouped along.
struct codec_line {
  std::string name;
  kvt_header facts;
  origin source = origin::kvarts;
  std::optional<double> row, channel, token;

  std::string_view scale() const {
    if (facts.scale_type == kvt_scale_type::none) return "";
    if (facts.scale_type == kvt_scale_type::f32) return "f32";
    return facts.scale_type == kvt_scale_type::f16 ? "f16" : "bf16";
  }
  std::string_view zero_point() const { return facts.zero_points != 0 ? "f16" : ""; }
};

/// One side of a preset.
struct preset_side {
  std::string codec;
  axis along = axis::row;
  int group = 0;
  std::vector<std::string> transform;
  double bits = 0;
};

struct preset_line {
  std::string name;
  preset_side keys, values;
  windows window;
  origin source = origin::kvarts;

  double mean_bits() const { return (keys.bits + values.bits) / 2; }
};

std::vector<codec_line> all_codecs(int head_dim) {
  std::vector<codec_line> lines;
  for (std::string const& name : codec_names()) {
    codec_line line{name, {}, {}, {}, {}, {}};
    auto const add = [&](codec_ops const& codec, int group) {
      codec.describe(line.facts);
      line.source = codec.source();
      return bits_of(codec, group, head_dim);
    };
    if (auto const* const by_row = find_codec(name, axis::row)) {
      line.row = add(*by_row, 0);
    } else {
      line.channel = add(*find_codec(name, axis::channel), usual_group);
      line.token = add(*find_codec(name, axis::token), usual_group);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string rotation_text(rotation const& r) {
  if (r.rounds < 2) return r.rounds == 0 ? "" : "rotation";
  return fmt::format("{} rounds of rotation", r.rounds);
}

std::vector<std::string> parts_of(key_transform t) {
  if (t == key_transform::innerq) return {"InnerQ norm"};
  std::vector<std::string> parts;
  if (needs_calibration(t)) parts = {"center", "norm"};
  if (auto const r = rotation_text(key_rotation(t)); !r.empty()) parts.push_back(r);
  return parts;
}

std::vector<std::string> parts_of(value_transform t) {
  auto const r = rotation_text(value_rotation(t));
  return r.empty() ? std::vector<std::string>{} : std::vector{r};
}

template <class Codec, class Transform>
preset_side side_of(Transform t, int head_dim) {
  std::string const name{std::string_view(Codec::name())};
  double const bits = bits_of(*find_codec(name, Codec::grouped_along), Codec::group, head_dim);
  return {name, Codec::grouped_along, Codec::group, parts_of(t), bits};
}

std::vector<preset_line> all_presets(int head_dim) {
  std::vector<preset_line> lines;
  for_each_preset([&](auto const& preset) {
    using preset_type = std::remove_cvref_t<decltype(preset)>;
    lines.push_back({std::string(preset.name),
                     side_of<typename preset_type::key_codec>(preset.keys, head_dim),
                     side_of<typename preset_type::value_codec>(preset.values, head_dim),
                     preset.window, preset.source});
  });
  return lines;
}

json name_or_null(std::string_view name) { return name.empty() ? json() : json(name); }

json to_json(codec_line const& c) {
  json bits = json::object();
  if (c.row) bits["row"] = *c.row;
  if (c.channel) bits["channel"] = *c.channel;
  if (c.token) bits["token"] = *c.token;
  json line = {{"name", c.name},
               {"code_bits", c.facts.code_bits},
               {"scale", name_or_null(c.scale())},
               {"zero_point", name_or_null(c.zero_point())},
               {"bits", bits},
               {"source", to_string(c.source)}};
  if (!c.row) line["group"] = usual_group;
  return line;
}

json to_json(preset_side const& s) {
  json side = {{"codec", s.codec}, {"along", to_string(s.along)}};
  if (s.along != axis::row) side["group"] = s.group;
  side["transform"] = s.transform;
  return side;
}

json to_json(preset_line const& p) {
  return {{"name", p.name},
          {"bits", {{"k", p.keys.bits}, {"v", p.values.bits}, {"mean", p.mean_bits()}}},
          {"keys", to_json(p.keys)},
          {"values", to_json(p.values)},
          {"windows", {{"sink", p.window.sink}, {"recent", p.window.recent}}},
          {"source", to_string(p.source)}};
}

void print_json(int head_dim) {
  json all = {{"head_dim", head_dim}, {"codecs", json::array()}, {"presets", json::array()}};
  for (auto const& line : all_codecs(head_dim)) all["codecs"].push_back(to_json(line));
  for (auto const& line : all_presets(head_dim)) all["presets"].push_back(to_json(line));
  fmt::print("{}\n", all.dump(2));
}

std::string number(std::optional<double> bits) { return bits ? fmt::format("{:.3f}", *bits) : ""; }

void print_codecs(int head_dim) {
  table t({{"codec", false},
           {"code bits"},
           {"scale", false},
           {"zero", false},
           {"row"},
           {"channels"},
           {"tokens"},
           {"source", false}});
  for (codec_line const& c : all_codecs(head_dim)) {
    t.add({c.name, std::to_string(c.facts.code_bits), std::string(c.scale()),
           std::string(c.zero_point()), number(c.row), number(c.channel), number(c.token),
           std::string(to_string(c.source))});
  }
  fmt::print(
      "Codecs: bits a number with one scale a row, or groups of {} along channels or "
      "tokens, at head_dim {}\n\n{}",
      usual_group, head_dim, t.text());
}

/// "center, norm, rotation, midrise4" or "affine2 by 32 tokens".
std::string text_of(preset_side const& s) {
  std::vector<std::string> parts = s.transform;
  parts.push_back(s.codec);
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  if (s.along != axis::row) text += fmt::format(" by {} {}s", s.group, to_string(s.along));
  return text;
}

void print_presets(int head_dim) {
  table t({{"preset", false},
           {"K bits"},
           {"V bits"},
           {"mean"},
           {"keys", false},
           {"values", false},
           {"windows"},
           {"source", false}});
  for (preset_line const& p : all_presets(head_dim)) {
    t.add({p.name, number(p.keys.bits), number(p.values.bits), number(p.mean_bits()),
           text_of(p.keys), text_of(p.values),
           fmt::format("{} + {}", p.window.sink, p.window.recent),
           std::string(to_string(p.source))});
  }
  fmt::print(
      "\nPresets: bits a number at head_dim {}, parameters included; windows are first and "
      "last tokens in 16 bits\n\n{}",
      head_dim, t.text());
}

struct codecs_options {
  int head_dim = 128;
  bool as_json = false;
};

}  // namespace

void add_codecs(CLI::App& program) {
  auto const options = std::make_shared<codecs_options>();
  CLI::App* const command =
      program.add_subcommand("codecs", "List codecs and presets with the bits they take");
  command->add_option("--head-dim", options->head_dim, "Channels of a head")
      ->type_name("N")
      ->check(CLI::Range(1, max_head_dim))
      ->capture_default_str();
  command->add_flag("--json", options->as_json, "Print JSON instead of tables");
  command->callback([options] {
    if (options->as_json) return print_json(options->head_dim);
    print_codecs(options->head_dim);
    print_presets(options->head_dim);
  });
}

}  // namespace kvarts::tool
