// SPDX-License-Identifier: Apache-2.0
// The `kvarts` program: codecs on files, from the command line.
#include "commands.hpp"
#include "tool_error.hpp"

#include <kvarts/config.hpp>
#include <kvarts/numerics.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>

namespace {

using kvarts::tool::tool_error;

int fail(std::string_view sentence, int exit_code) {
  fmt::print(stderr, "kvarts: {}\n", sentence);
  return exit_code;
}

void describe(CLI::App& program) {
  program.name("kvarts");
  program.set_version_flag("--version", fmt::format("kvarts {}.{}.{}", KVARTS_VERSION_MAJOR,
                                                    KVARTS_VERSION_MINOR, KVARTS_VERSION_PATCH));
  program.require_subcommand(1);
  kvarts::tool::add_codecs(program);
  kvarts::tool::add_encode(program);
  kvarts::tool::add_decode(program);
  kvarts::tool::add_gemv(program);
  kvarts::tool::add_calibrate(program);
  kvarts::tool::add_eval(program);
  kvarts::tool::add_tier(program);
}

/// What is wrong with a command line: the parser's words, and where to read more.
int usage_error(CLI::App const& program, CLI::ParseError const& e) {
  std::string chosen;  // with its subcommand, where it has one
  for (auto apps = program.get_subcommands(); !apps.empty(); apps = apps[0]->get_subcommands()) {
    chosen += apps[0]->get_name() + " ";
  }
  if (!chosen.empty()) return fail(fmt::format("{}; see kvarts {}--help", e.what(), chosen), 2);
  auto const unknown = program.remaining();
  if (unknown.empty()) return fail("a command is missing; see kvarts --help", 2);
  return fail(fmt::format("unknown command {}; see kvarts --help",
                          kvarts::tool::in_quotes(unknown.front())),
              2);
}

/// Parses the command line, which runs the command; 0, or the exit code of `--help`.
int run(CLI::App& program, int argc, char** argv) {
  try {
    program.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    if (e.get_exit_code() == 0) return program.exit(e);  // --help and --version
    return usage_error(program, e);
  }
  if (std::fflush(stdout) != 0) return fail("cannot write to the standard output", 1);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error like a full disk
  if (!kvarts::numerics_ok()) {
    return fail("this build does not round float32 as the codecs demand (fast-math?)", 1);
  }
  CLI::App program("KV-cache codecs: encodes keys and values of LLM inference into few bits.");
  describe(program);
  return run(program, argc, argv);
} catch (tool_error const& e) {
  return fail(e.what(), e.exit_code());
} catch (std::bad_alloc const&) {
  return fail("out of memory", 1);
} catch (std::exception const& e) {
  return fail(e.what(), 1);
}
