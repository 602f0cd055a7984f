// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/program.hpp"
#include "support/tool_faults.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace {

using namespace kvarts::test;
using Catch::Matchers::ContainsSubstring;

std::string const sample = KVARTS_EXAMPLE_DATA "/sample.safetensors";
std::string const calibration = KVARTS_EXAMPLE_DATA "/sample.calibration.safetensors";

/// Arguments of a quick evaluation, and more.
std::vector<std::string> quick(std::vector<std::string> const& more) {
  std::vector<std::string> all = {"eval", sample, "--presets", "k3v2,int8", "--layers", "12"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

nlohmann::json results_of(std::string const& path) {
  return nlohmann::json::parse(file_text(path))["results"];
}

}  // namespace

TEST_CASE("eval prints a table, writes JSON and a page") {
  scratch_folder const folder;
  std::string const json_path = folder / "out.json";
  std::string const page_path = folder / "out.html";
  std::string const table =
      run_well(quick({"--calibration", calibration, "--json", json_path, "--html", page_path}));
  CHECK_THAT(table, ContainsSubstring("Layer 12") && ContainsSubstring("k3v2") &&
                        ContainsSubstring("sample.calibration.safetensors"));
  CHECK(table.find("Layer 0") == std::string::npos);

  auto const json = nlohmann::json::parse(file_text(json_path));
  CHECK(json["calibration"] == calibration);
  REQUIRE(json["results"].size() == 2);
  CHECK(json["results"][0]["preset"] == "k3v2");
  CHECK(json["results"][0]["layers"].size() == 1);
  CHECK(json["results"][0]["layers"][0]["layer"] == 12);
  CHECK_THAT(file_text(page_path), ContainsSubstring("<svg") && ContainsSubstring("k3v2"));
}

TEST_CASE("eval measures with windows off, on or both") {
  scratch_folder const folder;
  std::vector<nlohmann::json> results;
  for (char const* windows : {"off", "on", "both"}) {
    run_well(quick({"--windows", windows, "--json", folder / windows}));
    results.push_back(results_of(folder / windows));
  }
  REQUIRE(results[2].size() == 4);
  for (std::size_t i : {0u, 1u}) {
    CHECK(results[2][i] == results[0][i]);
    CHECK(results[2][i + 2] == results[1][i]);
  }
}

TEST_CASE("options before the dump do not swallow it") {
  CHECK_THAT(run_well({"eval", "--layers", "12", "--presets", "int8", sample}),
             ContainsSubstring("int8"));
}

TEST_CASE("a transform file of the same text gives the same figures as its dump") {
  scratch_folder const folder;
  std::string const transforms = folder / "transforms.safetensors";
  run_well({"calibrate", calibration, transforms});
  run_well(quick({"--calibration", calibration, "--json", folder / "dump.json"}));
  run_well(quick({"--calibration", transforms, "--json", folder / "transforms.json"}));
  run_well(quick({"--json", folder / "prefill.json"}));
  CHECK(results_of(folder / "dump.json") == results_of(folder / "transforms.json"));
  CHECK(results_of(folder / "dump.json") != results_of(folder / "prefill.json"));
}

TEST_CASE("bad usage of eval exits with 2 and a sentence") {
  CHECK_THAT(run_badly(2, quick({"--windows", "ajar"})), ContainsSubstring("ajar"));
  CHECK_THAT(run_badly(2, quick({"--threads", "0"})), ContainsSubstring("--threads"));
  CHECK_THAT(run_badly(2, {"eval", sample, "--layers", "5"}),
             ContainsSubstring("no layer 5; there are 0, 12"));
  CHECK_THAT(run_badly(2, {"eval", sample, "--layers", "first"}), ContainsSubstring("--layers"));
  CHECK_THAT(run_badly(2, {"eval", sample, "--presets", "k3v3,k3v9"}),
             ContainsSubstring("\"k3v9\"") && ContainsSubstring("k3v2"));
  CHECK_THAT(run_badly(2, {"eval"}), ContainsSubstring("DUMP"));
}

TEST_CASE("bad files of eval exit with 1 and a sentence") {
  scratch_folder const folder;
  CHECK_THAT(run_badly(1, {"eval", folder / "none"}), ContainsSubstring("cannot open"));
  CHECK_THAT(run_badly(1, {"eval", calibration}), ContainsSubstring("layers.0.v is missing"));
  CHECK_THAT(run_badly(1, quick({"--calibration", folder / "none"})),
             ContainsSubstring("cannot open"));
  CHECK_THAT(run_badly(1, quick({"--calibration", KVARTS_TEST_DATA "/golden.safetensors"})),
             ContainsSubstring("this is no dump"));
  CHECK_THAT(run_badly(1, quick({"--json", folder / "none" + std::string("/out")})),
             ContainsSubstring("cannot create"));
}
