// SPDX-License-Identifier: Apache-2.0
// `kvarts tier sim`: what a quantized host tier finds again, simulated.
#include "file.hpp"
#include "tier/byte_size.hpp"
#include "tier/sim_report.hpp"
#include "tier/tier_commands.hpp"
#include "tier/trace.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>

namespace kvarts::tool {

namespace {

struct sim_options {
  std::string trace;
  std::string model = "Qwen3-8B";
  std::int64_t budget = published_budget;
  std::int64_t block_tokens = 512;
  std::int64_t device_tokens = 16'384;
  std::string html;
  bool as_json = false;
};

sim_result simulate(sim_options const& o) {
  if (o.trace.empty()) return {{equal_tokens(), equal_bytes()}, sweep_groups(), sweep_budgets()};
  own_requests const own{o.trace, read_trace(o.trace, o.block_tokens), find_model(o.model),
                         o.budget, o.device_tokens};
  return {{run_own(own)}, {}, sweep_budgets(own)};
}

void run(sim_options const& o) {
  check_outputs({o.html}, {o.trace});
  sim_result const result = simulate(o);
  for (experiment const& e : result.experiments) require_restored(e);
  if (result.groups) require_restored(*result.groups);
  require_restored(result.budgets);
  if (!o.html.empty()) write_file(o.html, sim_html(result));
  fmt::print("{}", o.as_json ? sim_json(result) : sim_text(result));
}

}  // namespace

void add_tier_sim(CLI::App& tier) {
  auto const o = std::make_shared<sim_options>();
  CLI::App* const command = tier.add_subcommand(
      "sim", "Simulate hit rates: two published experiments and sweeps, or your own requests");
  auto* const trace =
      command
          ->add_option("--trace", o->trace,
                       "Your own requests instead, a JSON object a line: {\"input_length\", "
                       "\"output_length\", \"hash_ids\": [...]} or {\"prefix\": [ids], "
                       "\"prefix_length\": [tokens], ...}")
          ->type_name("FILE");
  command
      ->add_option("--model", o->model, "The model that serves the trace, as `tier plan` knows it")
      ->type_name("NAME")
      ->capture_default_str()
      ->needs(trace);
  takes_bytes(*command->add_option("--budget", o->budget, "Memory of the tier under the trace")
                   ->default_str("8GB")
                   ->needs(trace));
  command->add_option("--block", o->block_tokens, "Tokens of a block in \"hash_ids\"")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->needs(trace);
  command
      ->add_option("--device-tokens", o->device_tokens,
                   "Tokens of the device's pool; half of them keep prefixes")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str()
      ->needs(trace);
  command->add_option("--html", o->html, "Write a report with a chart, one HTML page")
      ->type_name("FILE");
  command->add_flag("--json", o->as_json, "Print JSON instead of tables");
  command->callback([o] { run(*o); });
}

}  // namespace kvarts::tool
