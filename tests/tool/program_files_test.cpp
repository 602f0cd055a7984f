// SPDX-License-Identifier: Apache-2.0
// No command writes a file that it reads, or one file twice: the user would lose it.
#include "support/catch.hpp"
#include "support/program.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

std::string const sample = std::string(KVARTS_EXAMPLE_DATA) + "/sample.safetensors";

/// Files that a run must leave as they are.
struct workshop {
  scratch_folder folder;

  workshop() {
    write_array(folder / "rows.npy", file_dtype::f32, {4, 2, 64}, std::vector<float>(4 * 2 * 64));
    write_array(folder / "query.npy", file_dtype::f32, {2, 64}, std::vector<float>(2 * 64));
    run_well({"encode", folder / "rows.npy", folder / "rows.kvt", "--codec", "midrise3"});
  }

  std::string fails(std::vector<std::string> const& arguments) const {
    std::vector<std::string> before;
    std::vector<std::string> const names = {"rows.npy", "query.npy", "rows.kvt"};
    for (auto const& name : names) before.push_back(file_text(folder / name));
    std::string const sentence = run_badly(2, arguments);
    for (std::size_t i = 0; i < names.size(); ++i) CHECK(file_text(folder / names[i]) == before[i]);
    return sentence;
  }
};

}  // namespace

TEST_CASE("outputs that are inputs are refused") {
  workshop const w;
  auto const at = [&](char const* name) { return w.folder / name; };
  std::string const again = "/./" + std::filesystem::path(at("rows.npy")).filename().string();
  std::string const other_name =
      std::filesystem::path(at("rows.npy")).parent_path().string() + again;
  std::vector<std::vector<std::string>> const commands = {
      {"encode", at("rows.npy"), at("rows.npy"), "--codec", "midrise3"},
      {"encode", at("rows.npy"), other_name, "--codec", "midrise3"},
      {"decode", at("rows.kvt"), at("rows.kvt")},
      {"gemv", "qk", at("rows.kvt"), at("query.npy"), at("query.npy")},
      {"gemv", "qk", at("rows.kvt"), at("query.npy"), at("rows.kvt")},
      {"eval", at("rows.npy"), "--json", at("rows.npy")},
      {"eval", sample, "--calibration", at("rows.npy"), "--html", at("rows.npy")},
  };
  for (auto const& command : commands) {
    CHECK_THAT(w.fails(command), ContainsSubstring("is read and written"));
  }
}

TEST_CASE("outputs that are one file are refused") {
  workshop const w;
  std::string const prefix = w.folder / "parts";
  CHECK_THAT(w.fails({"encode", w.folder / "rows.npy", prefix + ".codes_u8.npy", "--codec",
                      "midrise3", "--parts", prefix}),
             ContainsSubstring("is written twice"));
  CHECK_THAT(w.fails({"eval", sample, "--json", w.folder / "new", "--html", w.folder / "new"}),
             ContainsSubstring("is written twice"));
}

TEST_CASE("budgets are numbers above zero, windows one of three words") {
  for (char const* budget : {"-1", "0", "inf", "nan", "3x", ""}) {
    for (char const* option : {"--max-bits", "--max-kl"}) {
      CHECK_THAT(run_badly(2, {"eval", sample, option, budget}),
                 ContainsSubstring("is not a number above 0"));
    }
  }
  for (char const* windows : {"maybe", "2", ""}) {
    CHECK_THAT(run_badly(2, {"eval", sample, "--windows", windows}),
               ContainsSubstring("is not off, on or both"));
  }
}
