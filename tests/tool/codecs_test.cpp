// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/program.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <string>

namespace {

using namespace kvarts::test;
using Catch::Matchers::ContainsSubstring;
using json = nlohmann::json;

struct figures {
  double k, v, mean;
};

TEST_CASE("kvarts codecs gives the bits of the codecs' table") {
  std::map<std::string, figures> const expected = {{"fp16", {16, 16, 16}},
                                                   {"bf16", {16, 16, 16}},
                                                   {"int8", {8.125, 8.125, 8.125}},
                                                   {"int4", {4.5, 4.5, 4.5}},
                                                   {"innerq_base", {3.5, 3.5, 3.5}},
                                                   {"innerq_hybrid", {3.5, 3.0, 3.25}},
                                                   {"innerq_small", {3.5, 2.5, 3.0}},
                                                   {"innerq_base_wide", {3.5, 3.5, 3.5}},
                                                   {"innerq_hybrid_wide", {3.5, 3.0, 3.25}},
                                                   {"innerq_small_wide", {3.5, 2.5, 3.0}},
                                                   {"innerq_base_searched", {3.5, 3.5, 3.5}},
                                                   {"innerq_small_searched", {3.5, 2.5, 3.0}},
                                                   {"kivi", {3.0, 3.0, 3.0}},
                                                   {"kivi_sink", {3.0, 3.0, 3.0}},
                                                   {"turboquant", {4.25, 3.25, 3.75}},
                                                   {"turboquant_calibrated", {4.125, 3.125, 3.625}},
                                                   {"k8v8", {8.125, 8.125, 8.125}},
                                                   {"k4v4", {4.125, 4.125, 4.125}},
                                                   {"k4v3", {4.125, 3.125, 3.625}},
                                                   {"k4v2", {4.125, 2.125, 3.125}},
                                                   {"k3v3", {3.125, 3.125, 3.125}},
                                                   {"k3v2", {3.125, 2.125, 2.625}},
                                                   {"k2v2", {2.125, 2.125, 2.125}}};
  json const all = json::parse(run_well({"codecs", "--json"}));
  std::set<std::string> seen;
  for (json const& preset : all.at("presets")) {
    std::string const name = preset.at("name");
    CAPTURE(name);
    REQUIRE(expected.contains(name));
    figures const bits = expected.at(name);
    CHECK(preset.at("bits").at("k") == bits.k);
    CHECK(preset.at("bits").at("v") == bits.v);
    CHECK(preset.at("bits").at("mean") == bits.mean);
    seen.insert(name);
  }
  CHECK(seen.size() == expected.size());
}

TEST_CASE("kvarts codecs describes presets and codecs") {
  json const all = json::parse(run_well({"codecs", "--json"}));
  std::map<std::string, json> presets, codecs;
  for (json const& p : all.at("presets")) presets[p.at("name")] = p;
  for (json const& c : all.at("codecs")) codecs[c.at("name")] = c;
  CHECK(
      presets.at("kivi").at("keys") ==
      json(
          {{"codec", "affine2"}, {"along", "token"}, {"group", 32}, {"transform", json::array()}}));
  CHECK(presets.at("k3v2").at("keys") == json({{"codec", "midrise3"},
                                               {"along", "row"},
                                               {"transform", {"center", "norm", "rotation"}}}));
  CHECK(presets.at("k3v2").at("values") ==
        json({{"codec", "midrise2"}, {"along", "row"}, {"transform", {"rotation"}}}));
  CHECK(presets.at("kivi").at("windows") == json({{"sink", 0}, {"recent", 128}}));
  CHECK(presets.at("innerq_base").at("source") == "InnerQ");
  CHECK(codecs.at("int8_head").at("scale") == "bf16");
  CHECK(codecs.at("int8_head").at("bits") == json({{"row", 8.125}}));
  CHECK(codecs.at("int8_head").at("source") == "HiQCache");
  CHECK(codecs.at("hybrid2_wide").at("zero_point") == "f16");
  CHECK(codecs.at("symmetric2_searched").at("bits") == json({{"channel", 2.5}, {"token", 2.5}}));
  CHECK(codecs.at("symmetric2_searched").at("source") == "kvarts");
  CHECK(codecs.at("f16").at("scale").is_null());
  CHECK(codecs.at("codebook4_f32").at("scale") == "f32");
  CHECK(codecs.at("codebook4_f32").at("bits") == json({{"row", 4.25}}));
  CHECK(codecs.at("codebook4_f32").at("source") == "TurboQuant");
  CHECK(presets.at("turboquant").at("keys").at("transform") == json({"2 rounds of rotation"}));
  CHECK(presets.at("turboquant_calibrated").at("keys").at("transform") ==
        json({"center", "norm", "2 rounds of rotation"}));
  for (char const* name : {"symmetric3_narrow", "affine2", "midrise3", "bf16"}) {
    CHECK(codecs.contains(name));
  }
}

TEST_CASE("kvarts codecs computes bits for other head dimensions") {
  json const all = json::parse(run_well({"codecs", "--json", "--head-dim", "80"}));
  for (json const& c : all.at("codecs")) {
    // 80 channels are two groups of 32 and one of 16: three scales of 16 bits.
    if (c.at("name") == "symmetric3_narrow") {
      CHECK(c.at("bits").at("channel").get<double>() == Catch::Approx(3 + 3 * 16 / 80.0));
      CHECK(c.at("bits").at("token").get<double>() == Catch::Approx(3.5));
    }
    if (c.at("name") == "midrise4") {
      CHECK(c.at("bits").at("row").get<double>() == Catch::Approx(4 + 16 / 80.0));
    }
  }
  std::string const table = run_well({"codecs", "--head-dim", "64"});
  CHECK_THAT(table, ContainsSubstring("at head_dim 64"));
  CHECK_THAT(table, ContainsSubstring("k4v4"));
  CHECK_THAT(table, ContainsSubstring("4.250"));
  CHECK_THAT(run_badly(2, {"codecs", "--head-dim", "0"}), ContainsSubstring("--head-dim"));
  CHECK_THAT(run_badly(2, {"codecs", "--head-dim", "1025"}), ContainsSubstring("1 to 1024"));
}

TEST_CASE("every command has help, and the program a version") {
  CHECK_THAT(run_well({"--help"}), ContainsSubstring("encode"));
  CHECK_THAT(run_well({"--version"}), ContainsSubstring("kvarts 0."));
  for (char const* command : {"codecs", "encode", "decode", "gemv", "calibrate", "eval", "tier"}) {
    CHECK_THAT(run_well({command, "--help"}), ContainsSubstring(std::string("kvarts ") + command));
  }
}

TEST_CASE("a bad command line is one sentence and exit code 2") {
  CHECK_THAT(run_badly(2, {}), ContainsSubstring("a command is missing"));
  CHECK_THAT(run_badly(2, {"encoed"}), ContainsSubstring("unknown command \"encoed\""));
  CHECK_THAT(run_badly(2, {"codecs", "more"}), ContainsSubstring("more"));
  CHECK_THAT(run_badly(2, {"codecs", "--jsn"}), ContainsSubstring("--jsn"));
  CHECK_THAT(run_badly(2, {"encode"}), ContainsSubstring("kvarts encode --help"));
}

}  // namespace
