// SPDX-License-Identifier: Apache-2.0
/// @file
/// Evaluates every dump of a folder as `kvarts eval` does and compares all figures with those of an
/// independent implementation: `fidelity --data DIR [--expected FILE.csv]`. Each NAME.safetensors
/// of the folder takes its key transforms from NAME.calibration.safetensors. Exits with 1 when a
/// figure is off by more than 1% (and 2e-6).

#include "../tests/support/expected_figures.hpp"
#include "eval.hpp"
#include "table.hpp"

#include <kvarts/scheme.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace kvarts::tool;
using namespace kvarts::test;
using kvarts::visit_preset;

/// The largest deviation of one measure over the rows of a dump.
struct deviation {
  double relative = 0;
  expected_figures row;
  double measured = 0;
};

/// What the comparison of one dump found.
struct comparison {
  std::array<deviation, measure_fields.size()> worst;
  int rows = 0;
  int misses = 0;

  void add(expected_figures const& expected, measures const& measured) {
    ++rows;
    for (std::size_t i = 0; i < measure_fields.size(); ++i) {
      double const want = expected.values.*measure_fields[i].value;
      double const got = measured.*measure_fields[i].value;
      if (!agree(got, want)) ++misses;
      double const off = std::fabs(got - want);
      double const relative = off <= 2e-6 ? 0 : off / std::fabs(want);
      if (relative > worst[i].relative) worst[i] = {relative, expected, got};
    }
  }
};

eval_result evaluate_dump(std::filesystem::path const& folder, std::string const& name,
                          int threads) {
  std::string const path = (folder / (name + ".safetensors")).string();
  std::string const calibration_path = (folder / (name + ".calibration.safetensors")).string();
  auto const [file, contents] = open_safetensors(path);
  auto const [calibration_file, calibration] = open_safetensors(calibration_path);
  dump const of = read_dump(contents, path);
  return evaluate(of, calibrate_from(calibration, calibration_path, of),
                  {{}, threads, windows_choice::both});
}

/// Names of all dumps of a folder, in order.
std::vector<std::string> dumps_of(std::filesystem::path const& folder) {
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator(folder)) {
    std::string const name = entry.path().stem().string();
    bool const dump = entry.path().extension() == ".safetensors";
    if (dump && !name.ends_with(".calibration")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void report(table& t, std::string const& name, comparison const& c) {
  for (std::size_t i = 0; i < measure_fields.size(); ++i) {
    deviation const& d = c.worst[i];
    double const want = d.row.values.*measure_fields[i].value;
    if (d.relative == 0) {
      t.add({name, measure_fields[i].name, "0"});
    } else {
      t.add({name, measure_fields[i].name, fmt::format("{:.2e}", d.relative), d.row.preset,
             d.row.windows, std::to_string(d.row.layer), fmt::format("{:.6g}", want),
             fmt::format("{:.8g}", d.measured)});
    }
  }
}

/// Compares all dumps; true when every figure agrees.
bool run(std::filesystem::path const& folder, std::string const& expected_path, int threads) {
  std::vector<expected_figures> const expected = read_expected(expected_path);
  table t({{"dump", false},
           {"measure", false},
           {"rel. deviation"},
           {"preset", false},
           {"windows", false},
           {"layer"},
           {"expected"},
           {"measured"}});
  std::map<std::string, int> unknown;
  int rows = 0;
  int misses = 0;
  for (std::string const& name : dumps_of(folder)) {
    auto const start = std::chrono::steady_clock::now();
    eval_result const result = evaluate_dump(folder, name, threads);
    std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - start;
    comparison c;
    for (expected_figures const& row : expected) {
      if (row.dump != name) continue;
      measures const* const measured = find_measures(result, row.preset, row.layer, row.windows);
      if (measured != nullptr) {
        c.add(row, *measured);
      } else if (visit_preset(row.preset, [](auto const&) {})) {
        ++c.misses;  // the dump lacks the layer
      } else {
        ++unknown[row.preset];
      }
    }
    fmt::print("{}: {} rows in {:.1f} s, {} misses\n", name, c.rows, seconds.count(), c.misses);
    report(t, name, c);
    rows += c.rows;
    misses += c.misses;
  }
  fmt::print("\nLargest deviations (those up to 2e-6 count as 0)\n{}", t.text());
  for (auto const& [preset, count] : unknown) {
    fmt::print("left out: {} rows of {}, which is no preset of this version\n", count, preset);
  }
  fmt::print("{} rows, {} misses\n", rows, misses);
  return rows > 0 && misses == 0;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string folder;
  std::string expected;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CLI::App program("Compares the figures of kvarts eval with an independent implementation's.");
  program.add_option("--data", folder, "Folder of dumps and their calibrations")->required();
  program.add_option("--expected", expected,
                     "Figures to compare with; DIR/expected.csv by default");
  program.add_option("--threads", threads, "Threads")->check(CLI::Range(1, 1024));
  CLI11_PARSE(program, argc, argv);
  if (expected.empty()) expected = (std::filesystem::path(folder) / "expected.csv").string();
  return run(folder, expected, threads) ? 0 : 1;
} catch (std::exception const& e) {
  fmt::print(stderr, "fidelity: {}\n", e.what());
  return 1;
}
