// SPDX-License-Identifier: Apache-2.0
#include "layer_tensors.hpp"
#include "safetensors.hpp"
#include "support/catch.hpp"
#include "support/program.hpp"
#include "support/random.hpp"
#include "support/rows.hpp"
#include "transform_file.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <deque>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

/// A dump that owns its numbers, of random tensors.
struct made_dump {
  safetensors contents;
  std::deque<rows> tensors;

  rows const& add(std::string const& name, rows r) {
    tensors.push_back(std::move(r));
    rows const& kept = tensors.back();
    contents.tensors[name] = {file_dtype::f32,
                              {kept.tokens, kept.heads, kept.head_dim},
                              std::as_bytes(std::span(kept.values))};
    return kept;
  }
};

/// Channels of very different size and center.
rows uneven_rows(random_source& random, int heads, int head_dim, std::int64_t tokens) {
  rows r = normal_rows(random, heads, head_dim, tokens);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int h = 0; h < heads; ++h) {
      for (int d = 0; d < head_dim; ++d) {
        float& x = r.at(t, h, d);
        x = x * std::exp2(static_cast<float>(d % 7 - 3)) + static_cast<float>(100 * h - 5 * d);
      }
    }
  }
  return r;
}

/// Mean and root mean square about it, over all tokens from `skip` on, in two passes.
std::pair<double, double> moments(std::vector<rows const*> const& texts, std::int64_t skip,
                                  int head, int channel, bool about_mean) {
  double sum = 0, squares = 0, count = 0;
  auto const each = [&](auto f) {
    for (rows const* text : texts) {
      for (std::int64_t t = skip; t < text->tokens; ++t) f(text->at(t, head, channel));
    }
  };
  each([&](double x) { sum += x, count += 1; });
  double const mean = about_mean ? sum / count : 0;
  each([&](double x) { squares += (x - mean) * (x - mean); });
  return {mean, std::sqrt(squares / count)};
}

TEST_CASE("centers and norms of several dumps are those of all their tokens") {
  CAPTURE(test_seed());
  random_source random(test_seed());
  int const heads = 2, shared = 3, head_dim = 40;
  made_dump one, two;
  rows const& k1 = one.add("layers.4.k", uneven_rows(random, heads, head_dim, 70));
  rows const& q1 = one.add("layers.4.q", normal_rows(random, heads * shared, head_dim, 20));
  rows const& k2 = two.add("layers.4.k", uneven_rows(random, heads, head_dim, 51));
  rows const& q2 = two.add("layers.4.q", normal_rows(random, heads * shared, head_dim, 33));
  one.contents.metadata = {{"model", "m"}, {"rope", "half-split"}};
  scratch_folder const folder;
  write_safetensors(folder / "one", one.contents);
  write_safetensors(folder / "two", two.contents);
  for (std::int64_t const skip : {32, 0}) {
    std::string const out = folder / "out";
    std::vector<std::string> arguments = {"calibrate", folder / "one", folder / "two", out};
    if (skip == 0) arguments.insert(arguments.end(), {"--skip", "0"});
    CHECK_THAT(run_well(arguments), ContainsSubstring(skip == 0 ? "121 keys" : "57 keys"));
    transform_file const file = read_transform_file(out);
    CHECK(file.model == "m");
    CHECK(file.rope == "half-split");
    CHECK(file.rotate == rotation{1, 1});
    REQUIRE(file.layers.size() == 1);
    transform const& t = file.layers.at(4);
    double worst_center = 0, worst_norm = 0;
    for (int h = 0; h < heads; ++h) {
      for (int d = 0; d < head_dim; ++d) {
        auto const i = static_cast<std::size_t>(h * head_dim + d);
        auto const [mean, sd] = moments({&k1, &k2}, skip, h, d, true);
        double squares = 0;
        for (int q = h * shared; q < (h + 1) * shared; ++q) {
          squares += std::pow(moments({&q1, &q2}, 0, q, d, false).second, 2);
        }
        double const norm = std::sqrt(sd / std::sqrt(squares / shared));
        worst_center =
            std::max(worst_center, std::fabs(t.center[i] - mean) / (sd + std::fabs(mean)));
        worst_norm = std::max(worst_norm, std::fabs(t.norm[i] / norm - 1));
      }
    }
    CHECK(worst_center < 1e-6);
    CHECK(worst_norm < 1e-6);
  }
}

TEST_CASE("without queries the norm is that of the keys alone, and constant channels keep theirs") {
  CAPTURE(test_seed());
  random_source random(test_seed());
  made_dump made;
  rows keys = uneven_rows(random, 1, 16, 64);
  for (std::int64_t t = 0; t < keys.tokens; ++t) keys.at(t, 0, 9) = -7.0f;
  rows const& k = made.add("layers.0.k", std::move(keys));
  scratch_folder const folder;
  write_safetensors(folder / "dump", made.contents);
  run_well({"calibrate", folder / "dump", folder / "out"});
  transform const t = read_transform_file(folder / "out").layers.at(0);
  CHECK(t.center[9] == -7.0f);
  CHECK(t.norm[9] == 1.0f);
  CHECK(t.norm[3] == Catch::Approx(std::sqrt(moments({&k}, 32, 0, 3, true).second)));
}

TEST_CASE("a calibration serves encode, and its summary comes as JSON") {
  scratch_folder const folder;
  std::string const data = KVARTS_EXAMPLE_DATA;
  std::string const out = folder / "t.safetensors";
  auto const summary = nlohmann::json::parse(
      run_well({"calibrate", data + "/sample.calibration.safetensors", out, "--json"}));
  CHECK(summary.at("keys") == 512 - 32);
  CHECK(summary.at("queries") == 64);
  CHECK(summary.at("rope") == "half-split");
  REQUIRE(summary.at("layers").size() == 2);
  CHECK(summary.at("layers")[1].at("layer") == 12);
  CHECK(summary.at("layers")[0].at("largest_center") > 100);  // a model with key biases

  // The transform is what makes few bits do: relative error of 3-bit keys, with it and without.
  std::string const in = data + "/sample.safetensors::layers.0.k";
  std::vector<float> decoded[3];
  run_well({"encode", in, folder / "0.kvt", "--codec", "f16"});
  run_well({"encode", in, folder / "1.kvt", "--codec", "midrise3", "--transform", out + "::0"});
  run_well({"encode", in, folder / "2.kvt", "--codec", "midrise3", "--rotate"});
  for (int i = 0; i < 3; ++i) {
    std::string const name = std::to_string(i);
    run_well({"decode", folder / (name + ".kvt"), folder / (name + ".npy")});
    decoded[i] = read_array(folder / (name + ".npy")).as<float>();
  }
  double error[3] = {};
  for (int i = 1; i < 3; ++i) {
    for (std::size_t j = 0; j < decoded[0].size(); ++j) {
      error[i] += std::pow(static_cast<double>(decoded[i][j]) - decoded[0][j], 2);
    }
  }
  CHECK(error[1] < 0.05 * error[2]);
  CHECK_THAT(run_badly(1, {"encode", in, folder / "3.kvt", "--codec", "midrise3", "--transform",
                           out + "::1"}),
             ContainsSubstring("no layer 1; there are 0, 12"));
}

TEST_CASE("dumps that do not fit are refused by name, and the output stays") {
  random_source random(test_seed());
  scratch_folder const folder;
  write_file(folder / "out", "old");
  auto const write = [&](std::string const& name, std::string const& tensor, int heads,
                         int head_dim, std::int64_t tokens, std::string const& model,
                         std::string const& rope) {
    made_dump made;
    made.add(tensor, normal_rows(random, heads, head_dim, tokens));
    if (!model.empty()) made.contents.metadata["model"] = model;
    if (!rope.empty()) made.contents.metadata["rope"] = rope;
    write_safetensors(folder / name, made.contents);
  };
  auto const fails = [&](int exit_code, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "calibrate");
    std::string const sentence = run_badly(exit_code, arguments);
    CHECK(file_text(folder / "out") == "old");
    return sentence;
  };
  auto const second = [&] { return fails(1, {folder / "a", folder / "b", folder / "out"}); };
  write("a", "layers.2.k", 2, 64, 40, "m", "half-split");
  write("b", "layers.2.k", 1, 64, 40, "", "");
  CHECK_THAT(second(), ContainsSubstring("b: KV heads 1 where " + (folder / "a") + " has 2"));
  write("b", "layers.2.k", 2, 32, 40, "", "");
  CHECK_THAT(second(), ContainsSubstring("b: head_dim 32 where"));
  write("b", "layers.3.k", 2, 64, 40, "", "");
  CHECK_THAT(second(), ContainsSubstring("b: layers 3 where"));
  write("b", "layers.2.k", 2, 64, 40, "other", "");
  CHECK_THAT(second(), ContainsSubstring("b: model \"other\" where"));
  write("b", "layers.2.k", 2, 64, 40, "", "interleaved pairs");
  CHECK_THAT(second(), ContainsSubstring("b: rope \"interleaved pairs\" where"));
  write("b", "layers.2.k", 2, 64, 32, "", "");
  CHECK_THAT(second(), ContainsSubstring("b: 32 tokens leave no keys after the 32"));
  write("b", "weights", 2, 64, 40, "", "");
  CHECK_THAT(second(), ContainsSubstring("b: "));
  CHECK_THAT(fails(1, {folder / "none", folder / "out"}), ContainsSubstring("none: cannot open"));
  CHECK_THAT(fails(2, {folder / "a"}), ContainsSubstring("kvarts calibrate --help"));
  CHECK_THAT(fails(2, {folder / "a", folder / "out", "--skip", "-1"}), ContainsSubstring("--skip"));

  // Who forgets to name the output must not lose the last dump.
  std::string const dump = file_text(folder / "b");
  CHECK_THAT(fails(2, {folder / "a", folder / "b"}), ContainsSubstring("b: is a dump"));
  CHECK((file_text(folder / "b") == dump));
}

TEST_CASE("calibrating again replaces an older transform file") {
  random_source random(test_seed());
  scratch_folder const folder;
  made_dump made;
  made.add("layers.0.k", normal_rows(random, 1, 8, 40));
  write_safetensors(folder / "dump", made.contents);
  run_well({"calibrate", folder / "dump", folder / "out"});
  std::string const first = file_text(folder / "out");
  run_well({"calibrate", folder / "dump", folder / "out", "--skip", "1"});
  CHECK((file_text(folder / "out") != first));
}

}  // namespace
