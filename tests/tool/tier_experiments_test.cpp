// SPDX-License-Identifier: Apache-2.0
// `kvarts tier sim`: the published hit rates, the sweep's, and that tiers were put to use.
#include "support/catch.hpp"
#include "support/html_checks.hpp"
#include "support/program.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <string>

namespace {

using namespace kvarts::test;
using Catch::Matchers::ContainsSubstring;
using json = nlohmann::json;

json const& simulation() {
  static json const all = json::parse(run_well({"tier", "sim", "--json"}));
  return all;
}

json const& run_of(json const& of, std::string const& tier) {
  for (json const& run : of.at("runs")) {
    if (run.at("tier") == tier) return run;
  }
  FAIL("no tier " + tier);
  return of;
}

json const& experiment(std::string const& name) {
  for (json const& e : simulation().at("experiments")) {
    if (e.at("name") == name) return e;
  }
  FAIL("no experiment " + name);
  return simulation();
}

TEST_CASE("experiment A: equal tokens, identical decisions, .5625 of the bytes") {
  json const& plain = run_of(experiment("A"), "bf16");
  json const& coded = run_of(experiment("A"), "int8");
  CHECK(plain.at("host_tokens") == 54'254);
  CHECK(coded.at("host_tokens") == 54'254);
  CHECK(plain.at("host_bytes") == 8'000'077'824);
  CHECK(coded.at("host_bytes") == 4'500'043'776);
  CHECK(plain.at("hits") == coded.at("hits"));
  CHECK(plain.at("hit_rate") == coded.at("hit_rate"));
}

TEST_CASE("experiment B: equal bytes, hit rates as published") {
  json const& plain = run_of(experiment("B"), "bf16");
  json const& coded = run_of(experiment("B"), "int8");
  CHECK(plain.at("codec") == "bf16");
  CHECK(coded.at("codec") == "int8");
  CHECK(plain.at("host_tokens") == 54'254);
  CHECK(coded.at("host_tokens") == 96'451);
  CHECK(plain.at("effective_tokens") == 62'000);
  CHECK(coded.at("effective_tokens") == 104'643);
  CHECK(plain.at("hit_rate").get<double>() == Catch::Approx(.568).margin(.0005));
  CHECK(coded.at("hit_rate").get<double>() == Catch::Approx(.7265).margin(.00005));
  CHECK(plain.at("requests") == 128);
  CHECK(plain.at("prompt_tokens").get<double>() == Catch::Approx(128 * 2220.3));
}

TEST_CASE("the sweep tells tiers apart that experiment B cannot") {
  json const& sweep = simulation().at("sweep");
  CHECK(sweep.at("groups") == json({32, 64, 96, 128, 160, 192}));
  CHECK(sweep.at("seeds") == 10);
  CHECK(sweep.at("budget") == 8'000'000'000);
  std::map<std::string, std::pair<int, double>> const expected = {{"bf16", {2048, .162}},
                                                                  {"int8", {1152, .271}},
                                                                  {"int8 at 16", {1040, .295}},
                                                                  {"4-bit groups", {640, .454}},
                                                                  {"3-bit groups", {448, .626}}};
  for (auto const& [tier, figures] : expected) {
    CAPTURE(tier);
    json const& run = run_of(sweep, tier);
    CHECK(run.at("record_bytes") == figures.first);
    CHECK(run.at("hit_rates")[3].get<double>() == Catch::Approx(figures.second).margin(.0005));
  }
}

TEST_CASE("more bytes never find less, and few bits reach the ceiling first") {
  json const& budgets = simulation().at("budgets");
  double before = 0;
  for (json const& run : budgets.at("runs")) {
    CAPTURE(run.at("tier"));
    double last = 0;
    for (double const rate : run.at("hit_rates")) {
      CHECK(rate >= last);
      last = rate;
    }
    double const at_8_gb = run.at("hit_rates")[5];
    CHECK(at_8_gb > before);  // tiers come with ever fewer bytes a token
    before = at_8_gb;
  }
  CHECK(budgets.at("budgets")[5] == 8'000'000'000);
  CHECK(run_of(budgets, "int8").at("hit_rates")[5] ==
        run_of(simulation().at("sweep"), "int8").at("hit_rates")[3]);
}

TEST_CASE("every tier of every experiment encoded and restored") {
  auto const check_runs = [](json const& of) {
    for (json const& run : of.at("runs")) {
      CAPTURE(run.dump());
      CHECK(run.at("encoded_bytes") > 0);
      CHECK(run.at("restored_bytes") > 0);
    }
  };
  for (json const& e : simulation().at("experiments")) check_runs(e);
  check_runs(simulation().at("sweep"));
  check_runs(simulation().at("budgets"));
  json const& coded = run_of(experiment("A"), "int8");
  json const& plain = run_of(experiment("A"), "bf16");
  CHECK(coded.at("restored_bytes").get<double>() ==
        plain.at("restored_bytes").get<double>() * .5625);
}

TEST_CASE("the simulation as tables and as a page") {
  std::string const text = run_well({"tier", "sim"});
  CHECK_THAT(text, ContainsSubstring("Experiment A: equal tokens"));
  CHECK_THAT(text, ContainsSubstring("4,500,043,776"));
  CHECK_THAT(text, ContainsSubstring("0.7265"));
  scratch_folder const folder;
  run_well({"tier", "sim", "--html", folder / "sim.html"});
  std::string const page = file_text(folder / "sim.html");
  check_page(page);
  CHECK(pictures_of(page).size() == 1);
  CHECK_THAT(page, ContainsSubstring("k3v2 pages: 8 GB"));
  CHECK_THAT(page, ContainsSubstring("Experiment B"));
  CHECK_THAT(run_badly(1, {"tier", "sim", "--html", folder / "no/folder.html"}),
             ContainsSubstring("folder.html"));
}

}  // namespace
