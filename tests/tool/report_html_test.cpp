// SPDX-License-Identifier: Apache-2.0
#include "report_html.hpp"

#include "report_parts.hpp"
#include "report_style.hpp"
#include "support/catch.hpp"
#include "support/html_checks.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

preset_result preset(std::string name, double k, double v, std::vector<double> const& output,
                     double kl) {
  preset_result p{std::move(name), "off", {k, v, (k + v) / 2}, {}, {.01, .02, .3, kl, 0}};
  for (std::size_t i = 0; i < output.size(); ++i) {
    p.layers.push_back({static_cast<int>(12 * i), {.01, .02, .3, kl, output[i]}});
    p.mean.output_rel_err += output[i] / static_cast<double>(output.size());
  }
  return p;
}

std::vector<preset_result> usual_presets() {
  // Output errors and KL of a real dump of two layers; the 16-bit rows are made up.
  return {
      preset("fp16", 16, 16, {0, 0}, 0),
      preset("bf16", 16, 16, {.0017, .0017}, 1.2e-6),
      preset("int8", 8.25, 8.25, {.617879, .0211061}, .642),
      preset("int4", 4.5, 4.5, {1.07303, .253568}, 5.93),
      preset("innerq_base", 3.5, 3.5, {1.06729, .44863}, 4.52),
      preset("innerq_hybrid", 3.5, 3, {1.11468, .494479}, 4.52),
      preset("innerq_small", 3.5, 2.5, {1.12957, .494472}, 4.52),
      preset("innerq_base_wide", 3.5, 3.5, {1.16449, .324776}, 4.56),
      preset("innerq_hybrid_wide", 3.5, 3, {1.2287, .339996}, 4.56),
      preset("innerq_small_wide", 3.5, 2.5, {1.12829, .347687}, 4.56),
      preset("innerq_base_searched", 3.5, 3.5, {1.20857, .342394}, 8.42),
      preset("innerq_small_searched", 3.5, 2.5, {1.16417, .351774}, 8.42),
      preset("kivi", 3, 3, {.481939, .293449}, .272),
      preset("kivi_sink", 3, 3, {.481939, .293449}, .272),
      preset("turboquant", 4.5, 3.5, {1.51067, .272579}, 25.9),
      preset("turboquant_calibrated", 4.25, 3.25, {.183864, .157578}, .0603),
      preset("k8v8", 8.25, 8.25, {.0138895, .00960538}, 4.52e-4),
      preset("k4v4", 4.25, 4.25, {.162491, .120767}, .0583),
      preset("k4v3", 4.25, 3.25, {.196484, .161161}, .0583),
      preset("k4v2", 4.25, 2.25, {.286476, .260624}, .0583),
      preset("k3v3", 3.25, 3.25, {.298192, .241103}, .203),
      preset("k3v2", 3.25, 2.25, {.358371, .314138}, .203),
      preset("k2v2", 2.25, 2.25, {.480514, .465755}, .629),
  };
}

channel_profile profile(int layer, int head, unsigned seed, std::size_t channels) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  channel_profile p{layer, head, {}, {}, {}};
  for (std::size_t c = 0; c < channels; ++c) {
    p.mean_before.push_back(40 * normal(random) * std::exp(normal(random)));
    p.rms_before.push_back(std::exp(1.5 * normal(random)));
    p.rms_after.push_back(2 + .3 * std::abs(normal(random)));
  }
  return p;
}

value_norms norms(int layer, int head, unsigned seed, std::size_t tokens) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> lengths(1, .4);
  value_norms v{layer, head, {.05}};
  while (v.norms.size() < tokens) v.norms.push_back(lengths(random));
  return v;
}

eval_result usual_result() {
  eval_result r{"d.safetensors", "a model",       "a text", 100, 16, 14, 2, 64,
                "c.safetensors", usual_presets(), {},       {},  {}};
  for (int const layer : {0, 12}) {
    for (int const head : {0, 1}) {
      auto const seed = static_cast<unsigned>(10 * layer + head + 1);
      r.channels.push_back(profile(layer, head, seed, 64));
      r.values.push_back(norms(layer, head, seed, 100));
    }
  }
  return r;
}

}  // namespace

TEST_CASE("the usual page names every preset and tells what to see", "[report]") {
  eval_result const r = usual_result();
  std::string const page = html_report(r);
  check_page(page);
  CHECK(pictures_of(page).size() == 5);  // two trade-offs, two layers of channels, norms
  for (preset_result const& p : r.presets) {
    CHECK_THAT(page, ContainsSubstring("</svg> " + p.preset + "</th>"));
  }
  CHECK_THAT(page, ContainsSubstring("Up to 3 bits k3v2 has the least output error, 33.6 % in 2.75 "
                                     "bits (closest other family: kivi, 38.8 %)"));
  CHECK_THAT(page, ContainsSubstring("int8 (61.8 % in layer 0, 2.11 % in layer 12)"));
  CHECK_THAT(page, ContainsSubstring("Token 0 is among the 5 % smallest in 4 of 4 rows."));
}

TEST_CASE("every preset is labelled in both trade-offs", "[report]") {
  eval_result const r = usual_result();
  std::vector<std::string> const pictures = pictures_of(html_report(r));
  for (std::size_t i = 0; i < 2; ++i) {
    std::string labels = " ";
    for (text_box const& t : texts_of(pictures[i])) labels += t.text + " ";
    for (preset_result const& p : r.presets) {
      bool const found = labels.find(" " + p.preset + " ") != std::string::npos ||
                         labels.find(" " + p.preset + ", ") != std::string::npos;
      CAPTURE(i, p.preset);
      CHECK(found);
    }
  }
}

TEST_CASE("texts from files are escaped", "[report]") {
  eval_result r = usual_result();
  std::string const evil = "</title><script>alert('x')</script>&\"";
  r.dump = r.model = r.text = r.calibration = evil;
  r.warnings = {evil};
  for (preset_result& p : r.presets) p.preset += evil;
  std::string const page = html_report(r);
  check_page(page);
  CHECK_THAT(page, ContainsSubstring("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;"));
  r.model.clear();  // the dump's name takes its place
  check_page(html_report(r));
}

TEST_CASE("values that are not finite are named and not drawn", "[report]") {
  eval_result r = usual_result();
  r.presets[2].mean.output_rel_err = not_a_number;
  r.presets[3].mean.attention_kl = infinite;
  r.presets[4].bits.k = -infinite;
  for (layer_result& l : r.presets[5].layers) {
    l.values = {not_a_number, infinite, -infinite, not_a_number, infinite};
  }
  r.presets[5].mean = r.presets[5].layers[0].values;
  r.channels[0].mean_before[3] = not_a_number;
  r.channels[1].rms_after[3] = infinite;
  r.values[0].norms[5] = not_a_number;
  std::string const page = html_report(r);
  check_page(page);
  CHECK_THAT(page, ContainsSubstring("n/a"));
  CHECK_THAT(page, ContainsSubstring("for want of a finite value: int8, innerq_hybrid."));
}

TEST_CASE("little data still makes a page", "[report]") {
  check_page(html_report({}));
  CHECK_THAT(html_report({}), ContainsSubstring("No preset was evaluated."));

  eval_result r{"d.safetensors", "", "", 1, 1, 1, 1, 1, "", {}, {}, {}, {}};
  for (preset_result const& p : usual_presets()) {  // each alone, in one layer
    r.presets = {p};
    r.presets[0].layers.resize(1);
    r.channels = {{0, 0, {0}, {0}, {}}};
    r.values = {{0, 0, {0}}};
    CAPTURE(p.preset);
    check_page(html_report(r));
  }
  r.presets[0].layers.clear();
  r.channels = {{0, 0, {}, {}, {}},
                {0, 1, {1, 2}, {1}, {1, 2}},
                {3, 0, {1e300, -1e-300}, {0, 0}, {0, 1e300}}};
  r.values = {{0, 0, {}}, {1, 0, {0, 0, 0}}, {2, 0, {-1}}, {3, 0, {1e-300, 1e300}}};
  check_page(html_report(r));
}

TEST_CASE("many layers and heads", "[report]") {
  for (int const layers : {5, 13, 30, 80}) {
    eval_result r = usual_result();
    r.channels.clear();
    r.values.clear();
    for (preset_result& p : r.presets) {
      auto const first = p.layers[0];
      p.layers.assign(static_cast<std::size_t>(layers), first);
      for (int l = 0; l < layers; ++l) p.layers[static_cast<std::size_t>(l)].layer = l;
    }
    for (int l = 0; l < layers; ++l) {
      for (int h = 0; h < 8; ++h) {
        r.channels.push_back(profile(l, h, static_cast<unsigned>(l * 8 + h), 128));
        r.values.push_back(norms(l, h, static_cast<unsigned>(l * 8 + h), 70));
      }
    }
    CAPTURE(layers);
    std::string const page = html_report(r);
    check_page(page);
    CHECK(pictures_of(page).size() == 7);  // channels of four layers at most
  }
}

TEST_CASE("labels do not overlap for other errors", "[report]") {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::lognormal_distribution<double> factor(0, seed % 3 == 0 ? .05 : .7);
    eval_result r = usual_result();
    for (preset_result& p : r.presets) {
      p.mean.output_rel_err *= factor(random);
      p.mean.attention_kl *= factor(random);
    }
    check_page(html_report(r));
  }
}

TEST_CASE("the best presets for their bits", "[report]") {
  std::vector<cost_and_error> const presets{{3, .4},           {3, .4}, {3, .5},
                                            {2, .6},           {4, .4}, {4, .1},
                                            {2, not_a_number}, {5, 0},  {infinite, 0}};
  CHECK(best_at_bits(presets) ==
        std::vector<bool>{true, true, false, true, false, true, false, true, false});
}

TEST_CASE("families of presets", "[report]") {
  CHECK(family_of("k3v2").css == "f-ours");
  CHECK(family_of("k3v2x").css == "f-other");
  CHECK(family_of("innerq_small_wide").css == "f-innerq");
  CHECK(family_of("kivi_sink").css == "f-kivi");
  CHECK(family_of("turboquant_calibrated").css == "f-turbo");
  CHECK(family_of("int8").css == "f-int");
  CHECK(family_of("bf16").css == "f-plain");
  CHECK(family_of("").css == "f-other");
}
