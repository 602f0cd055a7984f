// SPDX-License-Identifier: Apache-2.0
// `kvarts eval`: what every preset costs the attention of a real model.
#include "commands.hpp"
#include "eval.hpp"
#include "eval_json.hpp"
#include "eval_table.hpp"
#include "file.hpp"
#include "preset_file.hpp"
#include "report_html.hpp"
#include "tool_error.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kvarts::tool {

namespace {

std::map<std::string, windows_choice> const windows_names = {
    {"off", windows_choice::off}, {"on", windows_choice::on}, {"both", windows_choice::both}};

/// For CLI11: the number of a choice in place of its name, or what is wrong with the name.
std::string windows_number(std::string& text) {
  auto const found = windows_names.find(text);
  if (found == windows_names.end()) return in_quotes(text) + " is not off, on or both";
  text = std::to_string(static_cast<int>(found->second));
  return {};
}

/// For CLI11: budgets are finite numbers above zero.
std::string positive_number(std::string const& text) {
  char* end = nullptr;
  double const value = std::strtod(text.c_str(), &end);
  bool const whole = !text.empty() && *end == '\0';
  return whole && std::isfinite(value) && value > 0 ? "" : text + " is not a number above 0";
}

CLI::Validator const above_zero(positive_number, "");

struct command_options {
  std::string dump;
  std::string calibration;
  std::string preset_file;
  std::vector<int> layers;
  std::string json;
  std::string html;
  eval_options evaluation{{}, static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))};
};

/// Leaves the layers asked for, all where none are.
void choose_layers(dump& of, std::vector<int> const& wanted) {
  if (wanted.empty()) return;
  std::vector<int> there;
  for (dump_layer const& layer : of.layers) there.push_back(layer.layer);
  for (int const layer : wanted) {
    if (std::find(there.begin(), there.end(), layer) != there.end()) continue;
    throw tool_error(
        fmt::format("{}: no layer {}; there are {}", of.name, layer, fmt::join(there, ", ")), 2);
  }
  std::erase_if(of.layers, [&](dump_layer const& layer) {
    return std::find(wanted.begin(), wanted.end(), layer.layer) == wanted.end();
  });
}

eval_result evaluate_files(command_options const& o) {
  auto const [file, contents] = open_safetensors(o.dump);
  dump of = read_dump(contents, o.dump);
  choose_layers(of, o.layers);
  if (o.calibration.empty()) return evaluate(of, calibrate_from_prefill(of), o.evaluation);
  auto const [calibration_file, calibration] = open_safetensors(o.calibration);
  return evaluate(of, calibrate_from(calibration, o.calibration, of), o.evaluation);
}

void run(command_options& o) {
  check_outputs({o.json, o.html}, {o.dump, o.calibration, o.preset_file});
  if (!o.preset_file.empty()) o.evaluation.own = read_presets(o.preset_file);
  eval_result const result = evaluate_files(o);
  if (!o.json.empty()) write_file(o.json, eval_json(result));
  if (!o.html.empty()) write_file(o.html, html_report(result));
  fmt::print("{}", eval_tables(result));
}

}  // namespace

void add_eval(CLI::App& program) {
  auto const o = std::make_shared<command_options>();
  CLI::App* const command = program.add_subcommand(
      "eval", "Measure what presets cost the attention of a real model, on a dump of its tensors");
  command
      ->add_option("DUMP", o->dump,
                   "A .safetensors file with layers.{i}.k and .v [tokens, kv_heads, head_dim] and "
                   "layers.{i}.q [queries, query_heads, head_dim] of the last tokens")
      ->required();
  command
      ->add_option("--calibration", o->calibration,
                   "Key transforms: a file of `kvarts calibrate`, or the dump of another text; "
                   "without it they are estimated from the tokens before the queries")
      ->type_name("FILE");
  command->add_option("--presets", o->evaluation.presets, "Presets to evaluate, all by default")
      ->type_name("A,B,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--preset-file", o->preset_file,
                   "JSON with presets of your own, evaluated beside the shipped ones or by name: "
                   "{\"name\", \"keys\": {\"codec\", \"along\", \"group\", \"transform\"}, "
                   "\"values\": {...}, \"windows\": {\"sink\", \"recent\"}}, or a list of such")
      ->type_name("FILE");
  command->add_option("--layers", o->layers, "Layers to evaluate, all by default")
      ->type_name("I,J,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--windows", o->evaluation.windows,
                   "Windows of first and last tokens that stay exact: on as each preset has them; "
                   "off none, so only tokens behind the last whole group stay exact")
      ->type_name("off|on|both")
      ->default_str("off")
      ->transform(CLI::Validator(windows_number, ""));
  command
      ->add_option("--max-bits", o->evaluation.limits.max_bits,
                   "Which codec? The most exact preset of at most so many mean bits a value")
      ->type_name("B")
      ->check(above_zero);
  command
      ->add_option("--max-kl", o->evaluation.limits.max_kl,
                   "Which codec? The smallest preset of at most so many nats of mean attention KL")
      ->type_name("K")
      ->check(above_zero);
  command->add_option("--json", o->json, "Write the result as JSON")->type_name("FILE");
  command->add_option("--html", o->html, "Write a report with charts, one HTML page")
      ->type_name("FILE");
  command->add_option("--threads", o->evaluation.threads, "Threads; the result is the same")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->callback([o] { run(*o); });
}

}  // namespace kvarts::tool
