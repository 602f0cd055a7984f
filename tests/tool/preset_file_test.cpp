// SPDX-License-Identifier: Apache-2.0
#include "preset_file.hpp"

#include "support/catch.hpp"
#include "support/program.hpp"
#include "support/tool_faults.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

std::string refusal(std::string const& text) {
  return sentence_of([&] { parse_presets(text, "p.json"); });
}

/// A preset with one text replaced.
std::string changed(std::string const& from, std::string const& to) {
  std::string text =
      R"({"name": "mine", "keys": {"codec": "affine2", "along": "token", "group": 16},)"
      R"( "values": {"codec": "midrise3"}, "windows": {"sink": 32, "recent": 96}})";
  auto const at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void write_text(std::string const& path, std::string const& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("a preset file defines any pair of codecs") {
  auto const read = parse_presets(
      R"([{"name": "a", "keys": {"codec": "symmetric4_wide", "along": "channel", "group": 48,
                                 "transform": "calibrated"},
           "values": {"codec": "codebook3_f16", "along": "row", "transform": "turned"},
           "windows": {"recent": 7}},
          {"name": "b", "keys": {"codec": "affine2", "along": "token", "transform": "innerq"},
           "values": {"codec": "f16"}}])",
      "p.json");
  REQUIRE(read.size() == 2);
  CHECK(read[0].name == "a");
  CHECK(read[0].keys.codec == find_codec("symmetric4_wide", axis::channel));
  CHECK(read[0].keys.group == 48);
  CHECK(read[0].keys.transform == key_transform::calibrated);
  CHECK(read[0].values.codec == find_codec("codebook3_f16", axis::row));
  CHECK(read[0].values.group == 0);
  CHECK(read[0].values.transform == value_transform::turned);
  CHECK(read[0].window == windows{0, 7});
  CHECK(read[1].keys.step() == 32);
  CHECK(read[1].keys.transform == key_transform::innerq);
  CHECK(read[1].values.transform == value_transform::none);
  CHECK(read[1].window == windows{});
  CHECK(parse_presets(changed("mine", "yours"), "p.json").at(0).name == "yours");
}

TEST_CASE("bad preset files get a sentence that names the fault") {
  CHECK(refusal("{") == "p.json: this is no JSON");
  CHECK(refusal("") == "p.json: this is no JSON");
  CHECK(refusal("[]") == "p.json: there is no preset in it");
  CHECK(refusal("[3]") == "p.json: a preset is no object");
  CHECK(refusal("{}") == "p.json: a preset has no \"name\"");
  CHECK(refusal("[" + changed("a", "a") + "," + changed("a", "a") + "]") ==
        "p.json: preset \"mine\" comes twice");
  CHECK_THAT(refusal(changed("mine", "k3v2")), ContainsSubstring("k3v2 is a shipped preset"));
  CHECK_THAT(refusal(changed("\"mine\"", "4")), ContainsSubstring("\"name\" that is no text"));
  CHECK_THAT(refusal(changed("\"windows\"", "\"window\"")),
             ContainsSubstring("p.json: a preset: unknown field \"window\"") &&
                 ContainsSubstring("windows"));
  CHECK_THAT(refusal(changed("\"along\"", "\"axis\"")),
             ContainsSubstring("preset \"mine\": keys: unknown field \"axis\""));
  CHECK_THAT(refusal(changed("\"recent\"", "\"last\"")),
             ContainsSubstring("windows: unknown field \"last\""));
  CHECK_THAT(refusal(changed("affine2", "affine5")),
             ContainsSubstring("keys: unknown codec \"affine5\""));
  CHECK_THAT(refusal(changed("\"token\"", "\"tokens\"")), ContainsSubstring("\"tokens\""));
  CHECK_THAT(refusal(changed(", \"along\": \"token\"", "")), ContainsSubstring("\"along\""));
  CHECK_THAT(refusal(changed("\"midrise3\"", "\"midrise3\", \"group\": 32")),
             ContainsSubstring("values groups midrise3"));
  CHECK_THAT(refusal(changed("\"midrise3\"", "\"midrise3\", \"transform\": \"calibrated\"")),
             ContainsSubstring("values: unknown transform \"calibrated\""));
  for (char const* group : {"0", "-16", "1.5", "\"16\"", "65537", "99999999999999999999"}) {
    CAPTURE(group);
    CHECK_THAT(refusal(changed(": 16", std::string(": ") + group)),
               ContainsSubstring("as \"group\", not a whole number from 1 to 65536"));
  }
  CHECK_THAT(refusal(changed("\"sink\": 32", "\"sink\": -1")), ContainsSubstring("-1 as \"sink\""));
  CHECK_THAT(refusal(changed("\"sink\": 32", "\"sink\": 40")),
             ContainsSubstring("keys: a sink window of 40 tokens") && ContainsSubstring("16"));
  CHECK_THAT(refusal(changed("{\"codec\": \"midrise3\"}", "3")),
             ContainsSubstring("values is no object"));
}

TEST_CASE("eval measures presets of a file beside the shipped ones") {
  scratch_folder const folder;
  // The same as k3v2 but for its windows.
  write_text(folder / "p.json",
             R"({"name": "mine", "keys": {"codec": "midrise3", "transform": "calibrated"},)"
             R"( "values": {"codec": "midrise2", "transform": "rotated"}})");
  std::string const sample = KVARTS_EXAMPLE_DATA "/sample.safetensors";
  run_well({"eval", sample, "--layers", "12", "--preset-file", folder / "p.json", "--presets",
            "k3v2,mine", "--windows", "both", "--json", folder / "out.json"});
  auto const results = nlohmann::json::parse(file_text(folder / "out.json"))["results"];
  REQUIRE(results.size() == 4);
  CHECK(results[1]["preset"] == "mine");
  CHECK(results[1]["mean"] == results[0]["mean"]);
  CHECK(results[3]["mean"] == results[1]["mean"]);  // it has no windows
  CHECK(results[2]["mean"] != results[3]["mean"]);

  write_text(folder / "bad.json", "[");
  CHECK_THAT(run_badly(1, {"eval", sample, "--preset-file", folder / "bad.json"}),
             ContainsSubstring("bad.json: this is no JSON"));
  CHECK_THAT(run_badly(1, {"eval", sample, "--preset-file", folder / "none"}),
             ContainsSubstring("cannot open"));
}
