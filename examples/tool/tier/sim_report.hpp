// SPDX-License-Identifier: Apache-2.0
/// @file
/// What `kvarts tier sim` says.
#pragma once

#include "tier/experiments.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kvarts::tool {

struct sim_result {
  std::vector<experiment> experiments;
  std::optional<sweep> groups;
  sweep budgets;
};

/// "Experiment A", or "Trace".
std::string heading_of(experiment const& e);

/// A table for each experiment and sweep.
std::string sim_text(sim_result const& result);

/// `{"experiments": [{"name", "what", "runs": [{"codec", "hit_rate", ...}]}], "sweep": {"groups",
/// "runs": [{"codec", "hit_rates", ...}]}, "budgets": {"budgets", "runs"}}`.
std::string sim_json(sim_result const& result);

/// One self-contained HTML page: a chart of the hit rate against the budget, and the tables.
std::string sim_html(sim_result const& result);

}  // namespace kvarts::tool
