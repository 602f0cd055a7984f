// SPDX-License-Identifier: Apache-2.0
/// @file
/// Runs the built `kvarts` program (KVARTS_TOOL_EXE) and reads and writes the files that it works
/// on.
#pragma once

#include "file.hpp"
#include "npy.hpp"
#include "support/byte_strings.hpp"
#include "support/catch.hpp"
#include "support/tool_faults.hpp"
#include "tensor.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace kvarts::test {

/// What a run left behind.
struct program_run {
  int exit_code = -1;
  std::string out;
  std::string err;
};

inline std::string file_text(std::string const& path) {
  return text_of(tool::mapped_file(path).bytes());
}

/// Runs `kvarts` with these arguments, none of which holds a single quote.
inline program_run run_program(std::vector<std::string> const& arguments) {
  scratch_folder const folder;
  std::string command = std::string("'") + KVARTS_TOOL_EXE + "'";
  for (std::string const& argument : arguments) command += " '" + argument + "'";
  command += " >'" + (folder / "out") + "' 2>'" + (folder / "err") + "' </dev/null";
  INFO(command);
  int const status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), file_text(folder / "out"), file_text(folder / "err")};
}

/// Runs `kvarts`, which must succeed and say nothing on stderr; returns what it printed.
inline std::string run_well(std::vector<std::string> const& arguments) {
  program_run const run = run_program(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  REQUIRE(run.err.empty());
  return run.out;
}

/// Runs `kvarts`, which must fail so and print nothing else; returns its one sentence.
inline std::string run_badly(int exit_code, std::vector<std::string> const& arguments) {
  program_run const run = run_program(arguments);
  INFO(run.err);
  CHECK(run.exit_code == exit_code);
  CHECK(run.out.empty());
  CHECK(run.err.starts_with("kvarts: "));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  return run.err;
}

/// An array that owns its bytes.
struct owned_array {
  tool::file_dtype type{};
  std::vector<std::int64_t> shape;
  std::string bytes;

  template <class T>
  std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

inline owned_array read_array(std::string const& path) {
  auto const [file, values] = tool::open_npy(path);
  return {values.dtype, values.shape, text_of(values.bytes)};
}

template <class T>
void write_array(std::string const& path, tool::file_dtype type, std::vector<std::int64_t> shape,
                 std::vector<T> const& values) {
  tool::write_npy(path, {type, std::move(shape), std::as_bytes(std::span(values))});
}

}  // namespace kvarts::test
