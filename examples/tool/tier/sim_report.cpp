// SPDX-License-Identifier: Apache-2.0
#include "tier/sim_report.hpp"

#include "table.hpp"
#include "tier/byte_size.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace kvarts::tool {

namespace {

using json = nlohmann::ordered_json;

std::string experiment_table(experiment const& e) {
  table t(
      {{"tier", false}, {"tokens"}, {"bytes"}, {"hits"}, {"hit rate"}, {"encoded"}, {"restored"}});
  for (tier_run const& run : e.runs) {
    t.add({run.tier.name, with_commas(run.host_tokens), with_commas(run.host_bytes()),
           fmt::format("{} of {}", run.result.hits, run.result.requests),
           fmt::format("{:.4f}", run.result.hit_rate()), with_commas(run.encoded_bytes()),
           with_commas(run.restored_bytes())});
  }
  return fmt::format("{}: {}\n\n{}", heading_of(e), e.what, t.text());
}

template <class Heading>
std::string sweep_table(sweep const& s, std::string_view over, Heading heading) {
  std::vector<column> columns = {{"tier", false}, {"bytes/token"}};
  for (std::int64_t const point : s.points) columns.push_back({heading(point)});
  table t(columns);
  for (sweep_line const& line : s.lines) {
    std::vector<std::string> row = {line.tier.name, with_commas(line.tier.bytes_per_token)};
    for (double const rate : line.hit_rates) row.push_back(fmt::format("{:.3f}", rate));
    t.add(std::move(row));
  }
  return fmt::format("Hit rate by {}: {}\n\n{}", over, s.what, t.text());
}

void add_tier_facts(json& to, tier_sizes const& tier) {
  bool const page = tier.form.record == tier::record_kind::page;
  to.update({{"codec", tier.codec},
             {"tier", tier.name},
             {"record", page ? "page" : "row"},
             {"alignment", tier.form.alignment},
             {"record_bytes", tier.record_bytes},
             {"bytes_per_token", tier.bytes_per_token}});
}

json to_json(tier_run const& run) {
  json one = json::object();
  add_tier_facts(one, run.tier);
  one.update({{"host_tokens", run.host_tokens},
              {"host_bytes", run.host_bytes()},
              {"effective_tokens", run.effective_tokens},
              {"requests", run.result.requests},
              {"hits", run.result.hits},
              {"prompt_tokens", run.result.prompt_tokens},
              {"hit_tokens", run.result.hit_tokens},
              {"hit_rate", run.result.hit_rate()},
              {"encoded_bytes", run.encoded_bytes()},
              {"restored_bytes", run.restored_bytes()}});
  return one;
}

json to_json(sweep const& s, char const* points) {
  json all = {{"what", s.what}, {points, s.points}, {"runs", json::array()}};
  for (sweep_line const& line : s.lines) {
    json one = json::object();
    add_tier_facts(one, line.tier);
    one.update({{"hit_rates", line.hit_rates},
                {"encoded_bytes", line.encoded_bytes},
                {"restored_bytes", line.restored_bytes}});
    all["runs"].push_back(std::move(one));
  }
  return all;
}

}  // namespace

std::string heading_of(experiment const& e) {
  return e.name == "trace" ? "Trace" : "Experiment " + e.name;
}

std::string sim_text(sim_result const& result) {
  std::string text;
  for (experiment const& e : result.experiments) text += experiment_table(e) + "\n";
  if (result.groups) {
    text += sweep_table(*result.groups, "groups",
                        [](std::int64_t groups) { return std::to_string(groups); }) +
            "\n";
  }
  return text + sweep_table(result.budgets, "budget", [](std::int64_t bytes) {
           return fmt::format("{:.4g} GB", static_cast<double>(bytes) / 1e9);
         });
}

std::string sim_json(sim_result const& result) {
  json all = {{"experiments", json::array()}};
  for (experiment const& e : result.experiments) {
    json one = {{"name", e.name}, {"what", e.what}, {"runs", json::array()}};
    for (tier_run const& run : e.runs) one["runs"].push_back(to_json(run));
    all["experiments"].push_back(std::move(one));
  }
  if (result.groups) {
    all["sweep"] = to_json(*result.groups, "groups");
    all["sweep"].update({{"budget", published_budget}, {"seeds", sweep_seeds}});
  }
  all["budgets"] = to_json(result.budgets, "budgets");
  return all.dump(2) + "\n";
}

}  // namespace kvarts::tool
