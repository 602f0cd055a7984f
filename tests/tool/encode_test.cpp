// SPDX-License-Identifier: Apache-2.0
// `kvarts encode` and `decode` on several heads and awkward shapes, against a second reader.
#include "support/catch.hpp"
#include "support/encoded_example.hpp"
#include "support/program.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tool;

TEST_CASE("what the program decodes is what a second reader reads") {
  CAPTURE(test_seed());
  for (example const& e : examples) {
    CAPTURE(e.codec, e.along, e.head_dim);
    encoded const x(e);
    run_well({"decode", x.folder / "a.kvt", x.folder / "d.npy"});
    owned_array const decoded = read_array(x.folder / "d.npy");
    REQUIRE(decoded.shape == std::vector<std::int64_t>{e.tokens, e.heads, e.head_dim});
    auto const values = decoded.as<float>();
    double worst = 0, error = 0, total = 0;
    for (std::int64_t t = 0; t < e.tokens; ++t) {
      for (int h = 0; h < e.heads; ++h) {
        auto const& row = x.row(t, h);
        double const scale = length(row) + 1e-30;
        for (int d = 0; d < e.head_dim; ++d) {
          double const value = values[x.source().index(t, h, d)];
          worst = std::max(worst, std::fabs(value - row[static_cast<std::size_t>(d)]) / scale);
          error += std::pow(value - x.source().at(t, h, d), 2);
          total += std::pow(x.source().at(t, h, d), 2);
        }
      }
    }
    CHECK(worst < (e.transform == wanted::nothing ? 1e-7 : 1e-5));
    // It is the input, more or less; norms at random do few bits no good.
    if (e.transform != wanted::everything) CHECK(error < (e.bits == 2 ? 0.6 : 0.2) * total);
    if (e.bits >= 8) CHECK(error < 0.001 * total);
  }
}

TEST_CASE("16-bit outputs of decode are its float32 rounded") {
  encoded const x(examples[0]);
  run_well({"decode", x.folder / "a.kvt", x.folder / "f32.npy"});
  auto const exact = read_array(x.folder / "f32.npy").as<float>();
  run_well({"decode", x.folder / "a.kvt", x.folder / "f16.npy", "--dtype", "f16"});
  run_well({"decode", x.folder / "a.kvt", x.folder / "bf16.npy", "--dtype", "bf16"});
  owned_array const f16 = read_array(x.folder / "f16.npy");
  owned_array const bf16 = read_array(x.folder / "bf16.npy");
  CHECK(f16.type == file_dtype::f16);
  CHECK(bf16.type == file_dtype::u16);
  auto const h = f16.as<std::uint16_t>();
  auto const b = bf16.as<std::uint16_t>();
  REQUIRE(h.size() == exact.size());
  int wrong = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    wrong += h[i] != half(exact[i]).bits || b[i] != bfloat16(exact[i]).bits ? 1 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("parts of several heads are those of each head alone") {
  CAPTURE(test_seed());
  for (example const& e : examples) {
    if (e.codec == "f16" || e.codec == "bf16") continue;
    CAPTURE(e.codec, e.along, e.head_dim);
    if (e.transform == wanted::everything) continue;  // its centers belong to all heads
    encoded const x(e);
    for (int h = 0; h < e.heads; ++h) {
      rows alone(1, e.head_dim, e.tokens);
      for (std::int64_t t = 0; t < e.tokens; ++t) {
        for (int d = 0; d < e.head_dim; ++d) alone.at(t, 0, d) = x.source().at(t, h, d);
      }
      x.encode(alone, x.folder / "one.kvt", {"--parts", x.folder / "one"}, 0);
      for (std::string const part :
           {"codes_u8", "scale_f16", "scale_bf16", "scale_f32", "zero_f16"}) {
        CAPTURE(part);
        std::string const name = "." + part + ".npy";
        REQUIRE(std::filesystem::exists(x.folder / ("p" + name)) ==
                std::filesystem::exists(x.folder / ("one" + name)));
        if (!std::filesystem::exists(x.folder / ("p" + name))) continue;
        owned_array const all = read_array(x.folder / ("p" + name));
        owned_array const one = read_array(x.folder / ("one" + name));
        auto shape = all.shape;
        REQUIRE(shape.at(1) == e.heads);
        shape.erase(shape.begin() + 1);
        CHECK(shape == one.shape);
        // Heads are the second axis: pick head h of each run.
        auto const rows_of = static_cast<std::size_t>(shape[0]);
        std::size_t const run = one.bytes.size() / rows_of;
        std::string picked;
        for (std::size_t i = 0; i < rows_of; ++i) {
          picked += all.bytes.substr(
              (i * static_cast<std::size_t>(e.heads) + static_cast<std::size_t>(h)) * run, run);
        }
        CHECK((picked == one.bytes));
      }
    }
  }
}

TEST_CASE("long sequences are coded in steps that change nothing") {
  // 2^20 numbers make a step, so these make several; the tail is a partial group.
  int const heads = 2, head_dim = 64, tokens = 20'005;
  random_source random(test_seed());
  rows const all = normal_rows(random, heads, head_dim, tokens);
  rows tail(heads, head_dim, tokens - 19'200);
  std::copy(all.values.end() - static_cast<std::ptrdiff_t>(tail.values.size()), all.values.end(),
            tail.values.begin());
  scratch_folder const folder;
  write_array(folder / "all.npy", file_dtype::f32, {tokens, heads, head_dim}, all.values);
  write_array(folder / "tail.npy", file_dtype::f32, {tail.tokens, heads, head_dim}, tail.values);
  for (std::string const along : {"channel", "token"}) {
    for (std::string const name : {"all", "tail"}) {
      run_well({"encode", folder / (name + ".npy"), folder / (name + ".kvt"), "--codec", "affine2",
                "--along", along});
      run_well({"decode", folder / (name + ".kvt"), folder / (name + "_decoded.npy")});
    }
    std::string const whole = read_array(folder / "all_decoded.npy").bytes;
    CHECK(whole.ends_with(read_array(folder / "tail_decoded.npy").bytes));
  }
}

TEST_CASE("no tokens make an empty cache that decodes to nothing") {
  scratch_folder const folder;
  write_array(folder / "in.npy", file_dtype::f16, {0, 2, 64}, std::vector<std::uint16_t>{});
  for (std::string const along : {"channel", "token"}) {
    run_well({"encode", folder / "in.npy", folder / "a.kvt", "--codec", "affine2", "--along", along,
              "--parts", folder / "p"});
    run_well({"decode", folder / "a.kvt", folder / "d.npy"});
    CHECK(read_array(folder / "d.npy").shape == std::vector<std::int64_t>{0, 2, 64});
    CHECK(read_array(folder / "p.codes_u8.npy").shape == std::vector<std::int64_t>{0, 2, 64});
  }
}

TEST_CASE("the summary tells what was made, and how many inputs were not finite") {
  scratch_folder const folder;
  std::vector<float> values(2 * 128, 1.0f);
  write_array(folder / "in.npy", file_dtype::f32, {2, 128}, values);
  arguments const encode = {
      "encode", folder / "in.npy", folder / "a.kvt", "--codec", "midrise4", "--align", "1"};
  std::string line = run_well(encode);
  CHECK(line == (folder / "a.kvt") +
                    ": 2 tokens, 1 heads, head_dim 128, midrise4 at 4.125 bits, "
                    "1024 bytes to 132, ratio 7.76\n");
  values[3] = std::nanf("");
  values[200] = -INFINITY;
  write_array(folder / "in.npy", file_dtype::f32, {2, 128}, values);
  line = run_well(encode);
  CHECK(line.ends_with(", 2 non-finite inputs made finite\n"));
}

}  // namespace
