// SPDX-License-Identifier: Apache-2.0
#include "eval.hpp"

#include "eval_json.hpp"
#include "eval_table.hpp"
#include "support/catch.hpp"
#include "support/dump_file.hpp"
#include "support/expected_figures.hpp"
#include "support/sanitized.hpp"
#include "support/tool_faults.hpp"

#include <kvarts/scheme.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

std::string const sample = KVARTS_EXAMPLE_DATA "/sample.safetensors";
std::string const sample_calibration = KVARTS_EXAMPLE_DATA "/sample.calibration.safetensors";

bool is_preset(std::string const& name) {
  return visit_preset(name, [](auto const&) {});
}

eval_result evaluate_prefill(dump_file const& file, eval_options const& options) {
  dump const of = read_dump(file.contents, "a.file");
  return evaluate(of, calibrate_from_prefill(of), options);
}

void check_finite(eval_result const& result) {
  for (preset_result const& p : result.presets) {
    CAPTURE(p.preset);
    for (auto const& [name, value] : measure_fields) {
      CAPTURE(name);
      CHECK(std::isfinite(p.mean.*value));
      CHECK(p.mean.*value >= 0);
    }
  }
}

}  // namespace

TEST_CASE("all presets measure what an independent implementation measured on the sample") {
  auto const [file, contents] = open_safetensors(sample);
  auto const [calibration_file, calibration] = open_safetensors(sample_calibration);
  dump of = read_dump(contents, sample);
  if (sanitized) of.layers.erase(of.layers.begin() + 1, of.layers.end());
  eval_result const result = evaluate(of, calibrate_from(calibration, sample_calibration, of),
                                      {{}, 2, windows_choice::both});

  int rows = 0;
  for (expected_figures const& row : read_expected(KVARTS_TEST_DATA "/expected.csv")) {
    if (row.dump != "sample" || !is_preset(row.preset)) continue;
    measures const* const measured = find_measures(result, row.preset, row.layer, row.windows);
    if (measured == nullptr && sanitized) continue;
    CAPTURE(row.preset, row.windows, row.layer);
    REQUIRE(measured != nullptr);
    for (auto const& [name, value] : measure_fields) {
      CAPTURE(name, measured->*value, row.values.*value);
      CHECK(agree(measured->*value, row.values.*value));
    }
    ++rows;
  }
  CHECK(rows == (sanitized ? 42 : 84));  // all presets but fp16 and bf16

  measures const fp16 = *find_measures(result, "fp16", 0);
  for (auto const& [name, value] : measure_fields) CHECK(fp16.*value == 0);
  REQUIRE(result.channels.size() == of.layers.size() * 2);
  REQUIRE(result.values.size() == of.layers.size() * 2);
  CHECK(result.channels[1].kv_head == 1);
  CHECK(result.channels[0].rms_after.size() == 64);
  CHECK(result.values[1].norms.size() == 768);
}

TEST_CASE("profiles are means, deviations and norms of the rows") {
  dump_file file({40, 3, 2, 2, 8}, {4}, 5);
  std::vector<float>& keys = file.add("layers.4.k", {40, 2, 8});
  std::vector<float> const& values = file.add("layers.4.v", {40, 2, 8}, random_source(6));
  for (std::size_t t = 0; t < 40; ++t) keys[(t * 2 + 1) * 8 + 3] = t % 2 == 0 ? 90.0f : 110.0f;
  eval_result const result = evaluate_prefill(file, {{"fp16"}, 1});
  REQUIRE(result.channels.size() == 2);
  channel_profile const& profile = result.channels[1];
  CHECK(profile.layer == 4);
  CHECK(profile.kv_head == 1);
  CHECK(profile.mean_before[3] == Catch::Approx(100));
  CHECK(profile.rms_before[3] == Catch::Approx(10));
  double square = 0;
  for (std::size_t d = 0; d < 8; ++d) square += std::pow(values[(39 * 2 + 0) * 8 + d], 2);
  CHECK(result.values[0].norms[39] == Catch::Approx(std::sqrt(square)));
}

TEST_CASE("threads change nothing") {
  dump_file const file({70, 37, 6, 2, 16}, {0, 3}, 7);
  std::string const one = eval_json(evaluate_prefill(file, {{}, 1}));
  CHECK(eval_json(evaluate_prefill(file, {{}, 2})) == one);
  CHECK(eval_json(evaluate_prefill(file, {{}, 5})) == one);
}

TEST_CASE("bits are those of layouts at the dump's head_dim") {
  eval_result const result = evaluate_prefill(dump_file({4, 1, 1, 1, 40}, {0}, 7), {{}, 1});
  REQUIRE(result.presets.size() == 23);
  for (preset_result const& p : result.presets) {
    CAPTURE(p.preset);
    CHECK(p.bits.mean == Catch::Approx((p.bits.k + p.bits.v) / 2));
    if (p.preset == "k4v2") {
      CHECK(p.bits.k == Catch::Approx(4.4));  // 16 bits of scale a row of 40
      CHECK(p.bits.v == Catch::Approx(2.4));
    }
    if (p.preset == "innerq_base") {
      CHECK(p.bits.k == Catch::Approx(3.8));  // two scales a row: groups of 32 and 8 channels
      CHECK(p.bits.v == Catch::Approx(3.5));
    }
  }
}

TEST_CASE("presets are evaluated in the order asked for, each once") {
  dump_file const file({40, 3, 2, 2, 8}, {0}, 5);
  eval_result const result = evaluate_prefill(file, {{"kivi", "fp16", "kivi"}, 1});
  REQUIRE(result.presets.size() == 2);
  CHECK(result.presets[0].preset == "kivi");
  CHECK(result.presets[1].preset == "fp16");
  CHECK_THAT(sentence_of([&] {
               evaluate_prefill(file, {{"kivy"}, 1});
             }),
             ContainsSubstring("unknown preset \"kivy\"") && ContainsSubstring("kivi"));
}

TEST_CASE("windows off and on are measured side by side, off first") {
  dump_file const file({300, 3, 2, 2, 8}, {0}, 5);
  eval_options options{{"k3v2", "int8"}, 1, windows_choice::both};
  eval_result const both = evaluate_prefill(file, options);
  REQUIRE(both.presets.size() == 4);
  options.windows = windows_choice::on;
  eval_result const on = evaluate_prefill(file, options);
  REQUIRE(on.presets.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(both.presets[i].windows == "off");
    CHECK(both.presets[i + 2].windows == "on");
    CHECK(both.presets[i + 2].preset == on.presets[i].preset);
    CHECK(both.presets[i + 2].mean.attention_kl == on.presets[i].mean.attention_kl);
  }
  CHECK(on.presets[0].mean.attention_kl < both.presets[0].mean.attention_kl);
  CHECK(on.presets[1].mean.output_rel_err == both.presets[1].mean.output_rel_err);  // has none
  CHECK_THAT(eval_tables(both),
             ContainsSubstring("k3v2 (windows on)") && ContainsSubstring("windows off and on"));
  CHECK_THAT(eval_tables(on), !ContainsSubstring("(windows") && ContainsSubstring("windows on"));
  CHECK(nlohmann::json::parse(eval_json(both))["results"][2]["windows"] == "on");

  // Nothing leaves the windows of a short text.
  eval_result const exact =
      evaluate_prefill(dump_file({128, 128, 2, 2, 8}, {0}, 5), {{"k3v2"}, 1, windows_choice::on});
  CHECK(exact.presets[0].mean.attention_kl == 0);
  CHECK(exact.presets[0].mean.logit_rms_err == 0);
  CHECK(exact.presets[0].mean.k_rel_sq_err > 0);
}

TEST_CASE("short texts and odd shapes have finite measures and say what they lack") {
  for (dump_file::sizes const s :
       {dump_file::sizes{1, 1, 1, 1, 1}, {33, 33, 3, 3, 7}, {31, 2, 4, 1, 24}, {100, 1, 5, 5, 3}}) {
    CAPTURE(s.tokens, s.queries, s.q_heads, s.kv_heads, s.head_dim);
    eval_result const result = evaluate_prefill(dump_file(s, {0}, 11), {{}, 1});
    check_finite(result);
    bool const no_prefill = s.tokens == s.queries;
    bool const short_prefill = s.tokens - s.queries <= 32;
    REQUIRE(result.warnings.size() == (no_prefill ? 1u : 0u) + (short_prefill ? 1u : 0u));
    if (short_prefill) CHECK_THAT(result.warnings[0], ContainsSubstring("too few to estimate"));
    if (no_prefill) CHECK_THAT(result.warnings[1], ContainsSubstring("norms are all 1"));
  }
  dump_file zeros({50, 4, 2, 1, 8}, {0}, 11);
  for (char const* name : {"layers.0.k", "layers.0.v"}) {
    for (float& x : zeros.add(name, {50, 1, 8})) x = 0.0f;
  }
  check_finite(evaluate_prefill(zeros, {{}, 1}));
}

TEST_CASE("JSON and tables hold every preset and layer") {
  dump_file file({40, 3, 2, 2, 8}, {0, 9}, 5);
  file.contents.metadata = {{"model", "a model"}, {"text", "a text"}};
  eval_result result = evaluate_prefill(file, {{"k3v2", "int8"}, 1});
  result.presets[1].layers[0].values.attention_kl = NAN;
  result.warnings = {"a reason"};
  result.dump = "not \xFF UTF-8";

  auto const json = nlohmann::json::parse(eval_json(result));
  CHECK(json["model"] == "a model");
  CHECK(json["tokens"] == 40);
  CHECK(json["q_heads"] == 2);
  CHECK(json["calibration"].is_null());
  REQUIRE(json["results"].size() == 2);
  auto const& preset = json["results"][0];
  CHECK(preset["preset"] == "k3v2");
  CHECK(preset["windows"] == "off");
  CHECK(preset["bits"]["k"] == 5.0);
  CHECK(preset["bits"]["mean"] == 4.5);
  REQUIRE(preset["layers"].size() == 2);
  CHECK(preset["layers"][1]["layer"] == 9);
  CHECK(preset["layers"][1]["output_rel_err"] == result.presets[0].layers[1].values.output_rel_err);
  CHECK(preset["mean"]["k_rel_sq_err"] == result.presets[0].mean.k_rel_sq_err);
  CHECK(json["results"][1]["layers"][0]["attention_kl"].is_null());

  std::string const text = eval_tables(result);
  for (char const* part : {"a model, a text", "Layer 0", "Layer 9", "Mean of 2 layers", "k3v2",
                           "int8", "KL of", "Warning: a reason"}) {
    CHECK_THAT(text, ContainsSubstring(part));
  }
}
