// SPDX-License-Identifier: Apache-2.0
#include "eval_choice.hpp"

#include "eval_json.hpp"
#include "eval_table.hpp"
#include "report_html.hpp"
#include "support/catch.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

/// A preset on layers 0 and 12 of one KV head.
preset_result preset(std::string const& name, double bits, std::vector<double> const& kl,
                     double output, bool bears_offsets = false) {
  preset_result p{name, "off", {bits, bits, bits}, {}, {}, bears_offsets};
  for (std::size_t i = 0; i < kl.size(); ++i) {
    p.layers.push_back({static_cast<int>(12 * i), {.01, .01, .1, kl[i], output}, {kl[i]}});
    p.mean.attention_kl += kl[i] / static_cast<double>(kl.size());
  }
  p.mean.output_rel_err = output;
  return p;
}

/// Layer 0 has a constant channel.
eval_result some_result() {
  eval_result r;
  r.presets = {preset("int8", 8.125, {1.28, .001}, .3),
               preset("k8v8", 8.125, {.0007, .0002}, .01, true),
               preset("kivi", 3, {.4, .1}, .4, true), preset("k3v3", 3.125, {.2, .1}, .27, true),
               preset("k2v2", 2.125, {.9, .2}, .48, true)};
  r.channels = {{0, 0, {300, 1}, {3, 4}, {1, 1}}, {12, 0, {9, 1}, {3, 4}, {1, 1}}};
  return r;
}

std::string chosen(eval_result const& r) {
  eval_choice const c = choose(r);
  return c.ranking.empty() ? "" : r.presets[c.ranking.front()].preset;
}

}  // namespace

TEST_CASE("budgets decide which preset comes first") {
  eval_result r = some_result();
  CHECK(chosen(r) == "k3v3");  // the smallest that is safe everywhere
  r.limits = {3.0, {}};
  CHECK(chosen(r) == "kivi");
  r.limits = {8.125, {}};
  CHECK(chosen(r) == "k8v8");  // the more exact of two at the same bits
  r.limits = {2.0, {}};
  CHECK(chosen(r).empty());
  CHECK(sentences_of(choose(r), r).front() == "No preset here stays within 2 bits.");
  r.limits = {{}, .2};
  CHECK(chosen(r) == "k3v3");
  r.limits = {{}, .6};
  CHECK(chosen(r) == "k2v2");
  r.limits = {{}, 1e-9};
  CHECK(chosen(r).empty());
  r.limits = {3.05, .2};
  CHECK(sentences_of(choose(r), r).front() ==
        "No preset here stays within 3.05 bits and a KL of 0.2 nats.");
  r.limits = {};
  r.presets.resize(1);
  CHECK_THAT(sentences_of(choose(r), r).front(), ContainsSubstring("No preset here is safe"));
  r.presets.clear();
  CHECK(choose(r).ranking.empty());
}

TEST_CASE("unsafe layers are named with their reason and a cure") {
  eval_result const r = some_result();
  eval_choice const c = choose(r);
  REQUIRE(c.unsafe.size() == 3);  // int8, kivi and k2v2 in layer 0
  CHECK(c.unsafe[0].constant_channels);
  CHECK(c.unsafe[0].kv_heads == std::vector<int>{0});
  CHECK_FALSE(c.unsafe[2].constant_channels);  // it takes the center off
  auto const sentences = sentences_of(c, r);
  REQUIRE(sentences.size() == 4);
  CHECK(sentences[1] ==
        "int8 is unsafe in layer 0, KV head 0 (KL 1.28 nats): its keys have constant channels and "
        "keep their center; k8v8 has 0.0007 there at the same bits.");
  CHECK_THAT(sentences[2], ContainsSubstring("k3v3 has 0.2 there in more bits"));
}

TEST_CASE("the chosen preset is overridden where it is unsafe") {
  eval_result r = some_result();
  r.limits = {3.0, {}};
  eval_choice const c = choose(r);
  REQUIRE(c.overrides.size() == 1);
  CHECK(c.overrides[0].layer == 0);
  CHECK(r.presets[c.overrides[0].preset].preset == "k3v3");
  CHECK_THAT(sentences_of(c, r).front(),
             ContainsSubstring("Within 3 bits take kivi (3.000 bits, KL 0.25 nats") &&
                 ContainsSubstring("means over 2 layers with windows off") &&
                 ContainsSubstring("Next comes k2v2") &&
                 ContainsSubstring("Layer 0 is better off with k3v3 (3.125 bits)."));
}

TEST_CASE("one bad KV head makes a layer unsafe, whatever the mean") {
  eval_result r = some_result();
  r.presets = {preset("k3v3", 3.125, {.1, .1}, .27)};
  r.presets[0].layers[1].kl_of_heads = {.01, .3, .02, NAN};
  eval_choice const c = choose(r);
  REQUIRE(c.unsafe.size() == 1);
  CHECK(c.unsafe[0].layer == 12);
  CHECK(c.unsafe[0].kv_heads == std::vector<int>{1, 3});
  CHECK_FALSE(c.unsafe[0].cure);
  CHECK(c.ranking.empty());
}

TEST_CASE("measures that are no numbers and layers that are missing are never chosen") {
  eval_result r = some_result();
  for (preset_result& p : r.presets) {
    if (p.preset != "kivi") p.mean.output_rel_err = p.mean.attention_kl = NAN;
  }
  r.presets[3].layers.clear();
  r.limits = {9.0, {}};
  CHECK(chosen(r) == "kivi");
  CHECK_FALSE(sentences_of(choose(r), r).empty());
}

TEST_CASE("windows on decide where they were measured") {
  eval_result r = some_result();
  preset_result on = preset("k2v2", 2.125, {.1, .1}, .2, true);
  on.windows = "on";
  r.presets.push_back(on);
  CHECK(choose(r).windows == "on");
  CHECK(choose(r).unsafe.empty());
  CHECK(chosen(r) == "k2v2");
}

TEST_CASE("the choice stands in the tables, the JSON and the page") {
  eval_result r = some_result();
  r.limits = {3.0, {}};
  std::string const first = sentences_of(choose(r), r).front();
  CHECK_THAT(eval_tables(r), ContainsSubstring("Which codec?\n" + first + "\nint8 is unsafe"));
  CHECK_THAT(html_report(r), ContainsSubstring("Which codec?") && ContainsSubstring(first));
  auto const choice = nlohmann::json::parse(eval_json(r))["choice"];
  CHECK(choice["preset"] == "kivi");
  CHECK(choice["ranking"] == nlohmann::json({"kivi", "k2v2"}));
  CHECK(choice["max_bits"] == 3.0);
  CHECK(choice["max_kl"].is_null());
  CHECK(choice["text"] == first);
  CHECK(choice["overrides"] == nlohmann::json::array({{{"layer", 0}, {"preset", "k3v3"}}}));
  CHECK(choice["unsafe"][0]["cure"] == "k8v8");
  CHECK(choice["unsafe"][0]["constant_channels"] == true);
}
