// SPDX-License-Identifier: Apache-2.0
// `kvarts tier plan`: published figures, named models, and what cannot be planned.
#include "support/catch.hpp"
#include "support/program.hpp"
#include "tier/byte_size.hpp"
#include "tier/models.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using Catch::Matchers::ContainsSubstring;
using json = nlohmann::json;

json plan(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"tier", "plan", "--json"});
  return json::parse(run_well(arguments));
}

std::string refused(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"tier", "plan"});
  return run_badly(2, arguments);
}

TEST_CASE("the published figures of Qwen3-8B") {
  for (auto const& [codec, alignment, bytes, tokens] : {std::tuple{"bf16", "128", 147'456, 54'254},
                                                        {"int8", "128", 82'944, 96'451},
                                                        {"int8", "16", 74'880, 106'838}}) {
    CAPTURE(codec, alignment);
    json const by_name = plan({"--model", "Qwen3-8B", "--codec", codec, "--align", alignment});
    CHECK(by_name.at("bytes_per_token") == bytes);
    CHECK(by_name.at("bytes_per_page") == bytes);
    CHECK(by_name.at("tokens_sglang") == tokens);
    CHECK(by_name.at("tokens_floor") == tokens - 1);
    json const by_numbers = plan({"--layers", "36", "--kv-heads", "8", "--head-dim", "128",
                                  "--budget", "8e9", "--codec", codec, "--align", alignment});
    for (char const* key : {"bytes_per_token", "bytes_per_page", "tokens_floor", "tokens_sglang"}) {
      CHECK(by_numbers.at(key) == by_name.at(key));
    }
  }
}

TEST_CASE("sizes of budgets") {
  using kvarts::tool::parse_bytes;
  for (auto const& [text, bytes] : std::vector<std::pair<char const*, std::int64_t>>{
           {"8000000000", 8'000'000'000},
           {"8e9", 8'000'000'000},
           {"8GB", 8'000'000'000},
           {"8GiB", 8'589'934'592},
           {"7.5GB", 7'500'000'000},
           {"1.1GB", 1'100'000'000},
           {"3kB", 3'000},
           {"3KiB", 3'072},
           {"2MB", 2'000'000},
           {"1.5TiB", 1'649'267'441'664},
           {"17B", 17},
           {"1152921504606846976", std::int64_t{1} << 60}}) {
    CAPTURE(text);
    CHECK(parse_bytes(text) == bytes);
  }
  for (char const* const text : {"",
                                 "B",
                                 "GB",
                                 "8 GB",
                                 "8gb",
                                 "8G",
                                 "8GBs",
                                 "8PB",
                                 "-1",
                                 "0",
                                 "0.2",
                                 "1e-3",
                                 "nan",
                                 "inf",
                                 "1e19",
                                 "2000000TB",
                                 "1152921504606846977",
                                 "99999999999999999999",
                                 "0x10",
                                 "8e9e9"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_bytes(text));
  }
  CHECK_THAT(refused({"--model", "Qwen3-8B", "--budget", "8G"}), ContainsSubstring("\"8G\""));
  CHECK(plan({"--model", "Qwen3-8B", "--codec", "int8", "--budget", "8GiB"}).at("budget") ==
        8'589'934'592);
}

TEST_CASE("numbers with commas") {
  using kvarts::tool::with_commas;
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(-123456) == "-123,456");
  CHECK(with_commas(8'000'077'824) == "8,000,077,824");
}

// Bytes of a token in 16 bits, without padding, from each model's published configuration.
TEST_CASE("models by name") {
  std::map<std::string, std::int64_t> const expected = {
      {"Qwen2.5-7B", 28 * 4 * 128 * 4},      {"Qwen2.5-72B", 80 * 8 * 128 * 4},
      {"Qwen3-8B", 36 * 8 * 128 * 4},        {"Qwen3-32B", 64 * 8 * 128 * 4},
      {"Qwen3-30B-A3B", 48 * 4 * 128 * 4},   {"Llama-3.1-8B", 32 * 8 * 128 * 4},
      {"Llama-3.1-70B", 80 * 8 * 128 * 4},   {"Llama-3.1-405B", 126 * 8 * 128 * 4},
      {"Mistral-7B-v0.3", 32 * 8 * 128 * 4}, {"Gemma-3-12B", 48 * 8 * 256 * 4},
      {"Gemma-3-27B", 62 * 16 * 128 * 4},    {"gpt-oss-20b", 24 * 8 * 64 * 4},
      {"gpt-oss-120b", 36 * 8 * 64 * 4},     {"DeepSeek-V3", 61 * (512 + 64) * 2}};
  CHECK(kvarts::tool::known_models().size() == expected.size());
  for (auto const& [name, bytes] : expected) {
    CAPTURE(name);
    CHECK(plan({"--model", name, "--codec", "bf16"}).at("bytes_per_token") == bytes);
  }
  CHECK_THAT(refused({"--model", "Qwen3-8b"}), ContainsSubstring("did you mean Qwen3-8B"));
  CHECK_THAT(refused({"--model", "GPT-2"}), ContainsSubstring("give --layers"));
}

TEST_CASE("MLA counts a coded latent and 16-bit RoPE channels, on every rank") {
  for (auto const& [codec, bytes] : {std::pair{"bf16", 1152}, {"int8", 648}, {"k3v2", 328}}) {
    for (char const* const ranks : {"1", "8"}) {
      json const all =
          plan({"--model", "DeepSeek-V3", "--codec", codec, "--align", "8", "--tp", ranks});
      CHECK(all.at("bytes_per_token") == 61 * bytes);
      CHECK(all.at("latent_dim") == 512);
      CHECK(all.at("rope_dim") == 64);
    }
  }
}

TEST_CASE("layers with windows are counted in full, and by themselves") {
  json const gemma = plan({"--model", "Gemma-3-27B", "--codec", "bf16"});
  CHECK(gemma.at("bytes_per_token") == 62 * 16 * 128 * 4);
  CHECK(gemma.at("window_layers") == 52);
  CHECK(gemma.at("bytes_per_token_full_layers") == 10 * 16 * 128 * 4);
  CHECK(gemma.at("bytes_per_sequence_window_layers") == 1024LL * 52 * 16 * 128 * 4);
  json const paged =
      plan({"--model", "gpt-oss-120b", "--codec", "bf16", "--record", "page", "--page", "96"});
  CHECK(paged.at("bytes_per_sequence_window_layers") == 2 * 96LL * 18 * 8 * 64 * 4);
  std::string const text = run_well({"tier", "plan", "--model", "Gemma-3-27B"});
  CHECK_THAT(text, ContainsSubstring("52 layers attend to the last 1,024 tokens only"));
  CHECK_THAT(text, ContainsSubstring("windows"));
}

TEST_CASE("records, pages, ranks and layouts") {
  json const rows = plan({"--model", "Qwen3-8B", "--codec", "int8", "--tp", "8"});
  CHECK(rows.at("local_heads") == 1);
  CHECK(rows.at("share_of_16_bits") == 1.0);
  json const page =
      plan({"--model", "Qwen3-8B", "--codec", "int8", "--tp", "8", "--record", "page"});
  CHECK(page.at("page_tokens") == 64);
  CHECK(page.at("bytes_per_page") == 72 * 8320);
  CHECK(page.at("bytes_per_token") == 72 * 130);
  CHECK(page.at("tokens_floor") == 8'000'000'000 / (72 * 8320) * 64);
  CHECK(page.at("tokens_sglang") == (8'000'000'000 / (72 * 8320) + 1) * 64);
  json const heads =
      plan({"--model", "Qwen3-8B", "--codec", "int8", "--layout", "page_head", "--align", "8"});
  CHECK(heads.at("bytes_per_token") == 72 * 8 * 136);
  CHECK(heads.at("layout") == "page_head");
  json const paged = plan({"--model", "Qwen3-8B", "--codec", "int8", "--page", "64"});
  CHECK(paged.at("bytes_per_page") == 64 * 82'944);
}

TEST_CASE("without a codec there is a line for every preset") {
  json const all = plan({"--model", "Qwen3-8B", "--record", "page"});
  json const codecs = json::parse(run_well({"codecs", "--json"}));
  REQUIRE(all.at("presets").size() == codecs.at("presets").size());
  for (std::size_t i = 0; i < all.at("presets").size(); ++i) {
    json const& one = all.at("presets")[i];
    json const& preset = codecs.at("presets")[i];
    CAPTURE(one.dump());
    CHECK(one.at("codec") == preset.at("name"));
    // Pages of 64 x 8 x 128 need no padding: the bits of the preset are those of the tier.
    double const bits = preset.at("bits").at("mean");
    CHECK(one.at("share_of_16_bits").get<double>() == Catch::Approx(bits / 16).epsilon(1e-12));
  }
  std::string const rows = run_well({"tier", "plan", "--model", "Qwen3-8B"});
  CHECK_THAT(rows, ContainsSubstring("\nk3v2 "));
  CHECK_THAT(rows, ContainsSubstring("Left out: int4, innerq_base") &&
                       ContainsSubstring("groups of 32 tokens needs page records"));
  json const json_rows = plan({"--model", "Qwen3-8B"});
  int refused_count = 0;
  for (json const& one : json_rows.at("presets")) refused_count += one.contains("refused") ? 1 : 0;
  CHECK(refused_count == 11);
}

TEST_CASE("what cannot be planned is one sentence with the number") {
  std::vector<std::string> const qwen = {"--model", "Qwen3-8B", "--codec", "int8"};
  auto const with = [&](std::vector<std::string> const& more) {
    std::vector<std::string> all = qwen;
    all.insert(all.end(), more.begin(), more.end());
    return refused(all);
  };
  CHECK_THAT(with({"--tp", "3"}), ContainsSubstring("8 KV heads cannot be split among 3 ranks"));
  CHECK_THAT(with({"--tp", "0"}), ContainsSubstring("among 0 ranks"));
  CHECK_THAT(refused({"--model", "DeepSeek-V3", "--tp", "-2"}), ContainsSubstring("-2 ranks"));
  CHECK_THAT(with({"--align", "24"}), ContainsSubstring("24"));
  CHECK_THAT(with({"--page", "0"}), ContainsSubstring("page has 1 to 65536 tokens, not 0"));
  CHECK_THAT(with({"--page", "-4"}), ContainsSubstring("-4"));
  CHECK_THAT(with({"--record", "rows"}), ContainsSubstring("rows"));
  CHECK_THAT(with({"--layout", "page"}), ContainsSubstring("page"));
  CHECK_THAT(with({"--budget", "1000"}), ContainsSubstring("1000 bytes does not hold one page"));
  CHECK_THAT(with({"--layers", "3"}), ContainsSubstring("--model"));
  CHECK_THAT(refused({"--model", "Qwen3-8B", "--codec", "int9"}), ContainsSubstring("int8"));
  CHECK_THAT(refused({"--model", "Qwen3-8B", "--codec", "kivi"}),
             ContainsSubstring("page records"));
  CHECK_THAT(
      refused({"--model", "Qwen3-8B", "--codec", "kivi", "--record", "page", "--page", "48"}),
      ContainsSubstring("48 tokens"));
  CHECK_THAT(refused({}), ContainsSubstring("--kv-heads"));
  CHECK_THAT(refused({"--layers", "36", "--kv-heads", "8"}), ContainsSubstring("--head-dim"));
  CHECK_THAT(refused({"--layers", "0", "--kv-heads", "8", "--head-dim", "128"}),
             ContainsSubstring("layers, not 0"));
  CHECK_THAT(refused({"--layers", "2", "--kv-heads", "-8", "--head-dim", "128"}),
             ContainsSubstring("-8 KV heads"));
  CHECK_THAT(refused({"--layers", "2", "--kv-heads", "8", "--head-dim", "2000"}),
             ContainsSubstring("head_dim is 2000"));
  CHECK_THAT(run_badly(2, {"tier"}), ContainsSubstring("kvarts tier --help"));
  CHECK_THAT(run_badly(2, {"tier", "plan", "--nothing"}),
             ContainsSubstring("kvarts tier plan --help"));
}

}  // namespace
