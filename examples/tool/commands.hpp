// SPDX-License-Identifier: Apache-2.0
/// @file
/// The subcommands of the `kvarts` program. Each `add_*` describes one to the parser, with a
/// callback that does the work while the command line is parsed; what fails there throws
/// `tool_error` (exit code 1 for bad data, 2 for bad usage), `kvarts::error` or a
/// `CLI::ParseError`, and main reports it.
#pragma once

namespace CLI {
class App;
}

namespace kvarts::tool {

void add_codecs(CLI::App& program);
void add_encode(CLI::App& program);
void add_decode(CLI::App& program);
void add_gemv(CLI::App& program);
void add_calibrate(CLI::App& program);
void add_eval(CLI::App& program);
void add_tier(CLI::App& program);

}  // namespace kvarts::tool
