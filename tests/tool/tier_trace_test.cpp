// SPDX-License-Identifier: Apache-2.0
// Requests of the user's own: both kinds of lines, and what is wrong with others.
#include "support/catch.hpp"
#include "support/html_checks.hpp"
#include "support/program.hpp"
#include "support/tool_faults.hpp"
#include "tier/trace.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <utility>

namespace {

using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;
using json = nlohmann::json;

workload parse(std::string const& text) { return parse_trace(text, "t.jsonl", 512); }

std::string refusal(std::string const& text) {
  return sentence_of([&] { parse(text); });
}

TEST_CASE("prefixes by name") {
  workload const w = parse(
      "{\"id\": \"a\", \"prefix\": [\"system\", \"doc\"], \"prefix_length\": [1000, 3000], "
      "\"input_length\": 4100, \"output_length\": 20}\n"
      "\n"
      "{\"prefix\": \"system\", \"prefix_length\": 1000, \"input_length\": 1000}");
  REQUIRE(w.requests.size() == 2);
  CHECK(w.prefix_count == 2);
  CHECK(w.requests[0].prefixes.size() == 2);
  CHECK(w.requests[0].prefixes[1].tokens == 3000);
  CHECK(w.requests[0].new_tokens == 120);
  CHECK(w.requests[0].prompt_tokens == 4100);
  CHECK(w.requests[1].prefixes[0].id == w.requests[0].prefixes[0].id);
  CHECK(w.requests[1].new_tokens == 0);
}

TEST_CASE("blocks by hash") {
  workload const w = parse(
      "{\"timestamp\": 3, \"input_length\": 1400, \"output_length\": 52, \"hash_ids\": [46, 47, "
      "48]}\r\n"
      "{\"input_length\": 1400, \"hash_ids\": [46, \"47\"]}\n"
      "{\"input_length\": 9, \"hash_ids\": []}\n");
  REQUIRE(w.requests.size() == 3);
  CHECK(w.prefix_count == 4);  // 47 and "47" are two
  CHECK(w.requests[0].prefixes[2].tokens == 1400 - 1024);
  CHECK(w.requests[0].new_tokens == 52);
  CHECK(w.requests[1].new_tokens == 1400 - 1024);
  CHECK(w.requests[2].new_tokens == 9);
}

TEST_CASE("a malformed line is named by its number") {
  std::string const good = "{\"input_length\": 600, \"hash_ids\": [1, 2]}\n\n";
  for (auto const& [line, why] : std::vector<std::pair<std::string, std::string>>{
           {"{", "is no JSON"},
           {"[1]", "is no object"},
           {"7", "is no object"},
           {"{}", "has no \"input_length\""},
           {R"({"input_length": 5})", "either \"prefix\" or \"hash_ids\""},
           {R"({"input_length": 5, "hash_ids": [], "prefix": []})", "either"},
           {R"({"input_length": 0, "hash_ids": []})", "has 0 as \"input_length\""},
           {R"({"input_length": -3, "hash_ids": []})", "-3"},
           {R"({"input_length": 1e3, "hash_ids": []})", "1000.0"},
           {R"({"input_length": 18446744073709551615, "hash_ids": []})", "18446744073709551615"},
           {R"({"input_length": "9", "hash_ids": []})", "something else"},
           {R"({"input_length": 9, "output_length": -1, "hash_ids": []})", "output_length"},
           {R"({"input_length": 9, "hash_ids": 4})", "no list"},
           {R"({"input_length": 9, "hash_ids": [null]})", "neither texts nor whole numbers"},
           {R"({"input_length": 9, "hash_ids": [1.5]})", "neither texts nor whole numbers"},
           {R"({"input_length": 512, "hash_ids": [1, 2]})", "2 blocks, but 512 tokens fill 1"},
           {R"({"input_length": 1512, "hash_ids": [1, 1]})", "twice"},
           {R"({"input_length": 9, "prefix": ["a"]})", "has no \"prefix_length\""},
           {R"({"input_length": 9, "prefix": ["a"], "prefix_length": []})", "1 prefixes, but 0"},
           {R"({"input_length": 9, "prefix": ["a"], "prefix_length": [10]})", "of 10 tokens in"},
           {R"({"input_length": 9, "prefix": ["a"], "prefix_length": [0]})", "has 0 as"},
           {R"({"input_length": 9, "prefix": "a", "prefix_length": [3, 3]})", "2 lengths"}}) {
    CAPTURE(line);
    std::string const sentence = refusal(good + line + "\n" + good);
    CHECK_THAT(sentence, ContainsSubstring("t.jsonl: line 3 ") && ContainsSubstring(why));
  }
  CHECK_THAT(refusal(""), ContainsSubstring("no request"));
  std::string long_ones;
  for (int i = 0; i < 17; ++i) long_ones += "{\"input_length\": 2147483648, \"hash_ids\": []}\n";
  CHECK_THAT(refusal(long_ones), ContainsSubstring("line 17 makes it more than 2^36 tokens"));
  CHECK_THAT(refusal("\n \n"), ContainsSubstring("no request"));
  CHECK_THAT(refusal(std::string(100000, '[')), ContainsSubstring("line 1"));
}

/// Twelve documents, each asked about four times, in turn.
std::string documents() {
  std::string text;
  for (int i = 0; i < 48; ++i) {
    text += json({{"id", i},
                  {"prefix", {"system", "doc" + std::to_string(i % 12)}},
                  {"prefix_length", {500, 7500}},
                  {"input_length", 8100},
                  {"output_length", 100}})
                .dump() +
            "\n";
  }
  return text;
}

TEST_CASE("kvarts tier sim reads a trace") {
  scratch_folder const folder;
  std::ofstream(folder / "t.jsonl") << documents();
  // Eleven other documents and twelve requests come between two uses of one: 11 x 7500 + 11 x 200.
  json const all =
      json::parse(run_well({"tier", "sim", "--trace", folder / "t.jsonl", "--json", "--html",
                            folder / "t.html", "--budget", "8GB", "--device-tokens", "16384"}));
  REQUIRE(all.at("experiments").size() == 1);
  CHECK(all.at("experiments")[0].at("name") == "trace");
  CHECK_FALSE(all.contains("sweep"));
  for (json const& run : all.at("experiments")[0].at("runs")) {
    CAPTURE(run.dump());
    bool const fits = run.at("host_tokens").get<int>() + 8192 >= 11 * 7700;
    CHECK(run.at("requests") == 48);
    // The system prompt is found from the fourth request on.
    CHECK(run.at("hits") == 45);
    CHECK(run.at("hit_tokens") == 45 * 500 + (fits ? 36 * 7500 : 0));
    CHECK((run.at("restored_bytes") > 0) == fits);
  }
  check_page(file_text(folder / "t.html"));
  CHECK_THAT(run_well({"tier", "sim", "--trace", folder / "t.jsonl", "--model", "DeepSeek-V3"}),
             ContainsSubstring("Trace: "));
}

TEST_CASE("a trace that restores nothing says nothing about a tier") {
  scratch_folder const folder;
  std::ofstream(folder / "t.jsonl") << "{\"input_length\": 600, \"hash_ids\": [1, 2]}\n";
  CHECK_THAT(run_badly(1, {"tier", "sim", "--trace", folder / "t.jsonl"}),
             ContainsSubstring("nothing was restored"));
  CHECK_THAT(run_badly(1, {"tier", "sim", "--trace", folder / "none.jsonl"}),
             ContainsSubstring("none.jsonl"));
  CHECK_THAT(run_badly(2, {"tier", "sim", "--budget", "8GB"}), ContainsSubstring("--trace"));
  CHECK_THAT(
      run_badly(2, {"tier", "sim", "--trace", folder / "t.jsonl", "--html", folder / "t.jsonl"}),
      ContainsSubstring("t.jsonl"));
  CHECK_THAT(run_badly(2, {"tier", "sim", "--trace", folder / "t.jsonl", "--block", "0"}),
             ContainsSubstring("--block"));
}

}  // namespace
