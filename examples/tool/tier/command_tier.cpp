// SPDX-License-Identifier: Apache-2.0
// `kvarts tier`: a host tier before there is one.
#include "commands.hpp"
#include "tier/tier_commands.hpp"

#include <CLI/CLI.hpp>

namespace kvarts::tool {

void add_tier(CLI::App& program) {
  CLI::App* const tier = program.add_subcommand(
      "tier", "Plan a tier of encoded pages in CPU memory, or simulate what it gains");
  tier->require_subcommand(1);
  add_tier_plan(*tier);
  add_tier_sim(*tier);
}

}  // namespace kvarts::tool
