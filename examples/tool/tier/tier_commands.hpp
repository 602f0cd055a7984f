// SPDX-License-Identifier: Apache-2.0
/// @file
/// The subcommands of `kvarts tier`, as commands.hpp has those of the program.
#pragma once

namespace CLI {
class App;
}

namespace kvarts::tool {

void add_tier_plan(CLI::App& tier);
void add_tier_sim(CLI::App& tier);

}  // namespace kvarts::tool
