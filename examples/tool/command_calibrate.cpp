// SPDX-License-Identifier: Apache-2.0
// `kvarts calibrate`: the transform file of a model from dumps of its keys and queries.
#include "commands.hpp"
#include "dump.hpp"
#include "progress.hpp"
#include "table.hpp"
#include "tool_error.hpp"
#include "transform_file.hpp"

#include <kvarts/calibrate.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kvarts::tool {

namespace {

struct calibrate_options {
  std::vector<std::string> files;  ///< dumps, then the file to write
  std::int64_t skip = calibration_skips;
  bool as_json = false;
};

/// What all dumps have in common, and the sums of their layers so far.
struct calibration {
  dump first;
  std::map<int, calibrator> layers;
  std::int64_t keys = 0;  ///< of each KV head, the skipped ones left out
  std::int64_t queries = 0;
};

std::vector<int> layer_numbers(dump const& d) {
  std::vector<int> numbers;
  for (dump_layer const& layer : d.layers) numbers.push_back(layer.layer);
  return numbers;
}

/// Another dump must be of the same model, as far as one can tell.
void check_alike(dump const& first, dump const& other) {
  auto const differ = [&](std::string_view what, auto const& a, auto const& b) {
    throw tool_error(fmt::format("{}: {} {} where {} has {}", other.name, what, b, first.name, a));
  };
  if (first.kv_heads != other.kv_heads) differ("KV heads", first.kv_heads, other.kv_heads);
  if (first.head_dim != other.head_dim) differ("head_dim", first.head_dim, other.head_dim);
  auto const a = layer_numbers(first);
  auto const b = layer_numbers(other);
  if (a != b) {
    differ("layers", fmt::format("{}", fmt::join(a, ", ")), fmt::format("{}", fmt::join(b, ", ")));
  }
  if (!first.model.empty() && !other.model.empty() && first.model != other.model) {
    differ("model", in_quotes(first.model), in_quotes(other.model));
  }
  if (!first.rope.empty() && !other.rope.empty() && first.rope != other.rope) {
    differ("rope", in_quotes(first.rope), in_quotes(other.rope));
  }
}

/// Adds the keys and queries of one dump.
void add_dump(calibration& sums, std::string const& path, std::int64_t skip) {
  auto const [file, contents] = open_safetensors(path);
  dump const d = read_dump(contents, path, {.queries = false, .values = false});
  if (sums.layers.empty()) sums.first = d;
  check_alike(sums.first, d);
  if (d.tokens <= skip) {
    throw tool_error(fmt::format("{}: {} tokens leave no keys after the {} that are skipped", path,
                                 d.tokens, skip));
  }
  progress bar("calibrating " + path, static_cast<std::int64_t>(d.layers.size()));
  for (dump_layer const& layer : d.layers) {
    auto& sum = sums.layers.try_emplace(layer.layer, d.kv_heads, d.head_dim).first->second;
    status s = sum.add_keys(layer.k, skip);
    if (s == status::ok && layer.q) s = sum.add_queries(*layer.q);
    if (s != status::ok) {
      throw tool_error(fmt::format("{}: layer {}: {}", path, layer.layer, to_string(s)));
    }
    bar.advance();
  }
  sums.keys += d.tokens - skip;
  sums.queries += d.queries;
}

/// Refuses to replace a dump: someone has forgotten to name the file to write.
void check_target(std::string const& out) {
  if (!std::filesystem::is_regular_file(out)) return;
  try {
    auto const [file, contents] = open_safetensors(out);
    if (is_transform_file(contents) || contents.tensors.empty()) return;
  } catch (tool_error const&) {
    return;  // no .safetensors file, so no dump
  }
  throw tool_error(out + ": is a dump; the last name is that of the transform file to write", 2);
}

/// Numbers of one layer for people.
struct layer_summary {
  int layer = 0;
  float largest_center = 0;
  float least_norm = 0;
  float largest_norm = 0;
};

layer_summary summarize(int layer, transform const& t) {
  auto const [least, largest] = std::minmax_element(t.norm.begin(), t.norm.end());
  float center = 0.0f;
  for (float const c : t.center) center = std::max(center, std::fabs(c));
  return {layer, center, *least, *largest};
}

void print(transform_file const& file, calibration const& sums, bool as_json) {
  nlohmann::ordered_json all = {{"model", file.model},
                                {"rope", file.rope},
                                {"kv_heads", sums.first.kv_heads},
                                {"head_dim", sums.first.head_dim},
                                {"keys", sums.keys},
                                {"queries", sums.queries},
                                {"layers", nlohmann::ordered_json::array()}};
  table t({{"layer"}, {"largest |center|"}, {"least norm"}, {"largest norm"}});
  for (auto const& [number, of_layer] : file.layers) {
    auto const [layer, center, least, largest] = summarize(number, of_layer);
    all["layers"].push_back({{"layer", layer},
                             {"largest_center", center},
                             {"least_norm", least},
                             {"largest_norm", largest}});
    t.add({std::to_string(layer), fmt::format("{:.4g}", center), fmt::format("{:.4g}", least),
           fmt::format("{:.4g}", largest)});
  }
  if (as_json) {
    fmt::print("{}\n", all.dump(2));
    return;
  }
  fmt::print("{} keys and {} queries of {} KV heads, head_dim {}\n\n{}", sums.keys, sums.queries,
             sums.first.kv_heads, sums.first.head_dim, t.text());
}

void run(calibrate_options const& o) {
  std::string const& out = o.files.back();
  check_target(out);
  calibration sums;
  for (auto path = o.files.begin(); path != o.files.end() - 1; ++path) {
    add_dump(sums, *path, o.skip);
  }
  transform_file file;
  file.model = sums.first.model;
  file.rope = sums.first.rope;
  for (auto const& [layer, sum] : sums.layers) {
    file.layers.emplace(layer, sum.finish(file.rotate));
  }
  write_transform_file(out, file);
  print(file, sums, o.as_json);
}

}  // namespace

void add_calibrate(CLI::App& program) {
  auto const o = std::make_shared<calibrate_options>();
  CLI::App* const command = program.add_subcommand(
      "calibrate", "Estimate the key transform of every layer from dumps of keys and queries");
  command
      ->add_option("FILES", o->files,
                   "Dumps (.safetensors with layers.{i}.k [tokens, kv_heads, head_dim] and maybe "
                   ".q [queries, query_heads, head_dim]), then the transform file to write")
      ->type_name("FILE")
      ->required()
      ->expected(-2);
  command->add_option("--skip", o->skip, "First tokens of each dump that are left out")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command->add_flag("--json", o->as_json, "Print JSON instead of a table");
  command->callback([o] { run(*o); });
}

}  // namespace kvarts::tool
