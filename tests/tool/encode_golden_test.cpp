// SPDX-License-Identifier: Apache-2.0
// `kvarts encode`, `decode` and `gemv` on all golden cases, bit for bit.
#include "safetensors.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/program.hpp"
#include "transform_file.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tool;

std::string const golden_path = std::string(KVARTS_TEST_DATA) + "/golden.safetensors";

/// The golden tensors, and files of the program in a scratch folder.
struct fixture {
  opened<safetensors> golden = open_safetensors(golden_path);
  scratch_folder folder;

  tensor const& at(std::string const& name) const {
    auto const found = golden.contents.tensors.find(name);
    CAPTURE(name);
    REQUIRE(found != golden.contents.tensors.end());
    return found->second;
  }
  bool has(std::string const& name) const { return golden.contents.tensors.contains(name); }

  std::vector<double> doubles(std::string const& name) const {
    tensor const& values = at(name);
    REQUIRE(values.dtype == file_dtype::f64);
    std::vector<double> all(values.bytes.size() / sizeof(double));
    std::memcpy(all.data(), values.bytes.data(), values.bytes.size());
    return all;
  }

  /// A file of the program has the bytes of a golden tensor, and its shape where `shaped`.
  void check_equal(std::string const& file, std::string const& name, bool shaped) const {
    CAPTURE(file, name);
    owned_array const is = read_array(folder / file);
    tensor const& expected = at(name);
    CHECK((is.bytes == text_of(expected.bytes)));
    if (shaped) CHECK(is.shape == expected.shape);
  }

  /// Codes and parameters as --parts wrote them.
  void check_parts(golden_case const& c, bool shaped) const {
    check_equal("p.codes_u8.npy", c.name + ".codes_u8", shaped);
    check_equal("p.scale_f16.npy", c.name + ".scale_f16", shaped);
    bool const zero = std::filesystem::exists(folder / "p.zero_f16.npy");
    CHECK(zero == has(c.name + ".zero_f16"));
    if (zero) check_equal("p.zero_f16.npy", c.name + ".zero_f16", shaped);
  }

  /// Decodes a.kvt to float32, which must be near the golden float64 rows.
  void check_near(std::string const& name) const {
    run_well({"decode", folder / "a.kvt", folder / "d.npy"});
    auto const is = read_array(folder / "d.npy").as<float>();
    auto const expected = doubles(name);
    REQUIRE(is.size() == expected.size());
    auto const channels = static_cast<std::size_t>(at(name).shape.back());
    for (std::size_t row = 0; row < is.size(); row += channels) {
      double largest = 0;  // a rotation spreads rounding errors over the row
      for (std::size_t d = 0; d < channels; ++d) {
        largest = std::max(largest, std::fabs(expected[row + d]));
      }
      for (std::size_t d = 0; d < channels; ++d) {
        if (std::fabs(is[row + d] - expected[row + d]) > 1e-6 * largest) {
          CHECK(is[row + d] == Catch::Approx(expected[row + d]));
        }
      }
    }
  }
};

std::string input_of(golden_case const& c) { return golden_path + "::" + c.input; }

TEST_CASE("int8_head records of the program are the golden ones") {
  int count = 0;
  for (golden_case const& c : golden_cases()) {
    if (c.codec != "int8_head") continue;
    CAPTURE(c.name);
    fixture f;
    std::vector<std::string> const options = {"--codec", "int8_head", "--align", c.group};
    auto const encode = [&](std::string const& out, std::vector<std::string> const& more) {
      std::vector<std::string> all = {"encode", input_of(c), f.folder / out};
      all.insert(all.end(), options.begin(), options.end());
      all.insert(all.end(), more.begin(), more.end());
      run_well(all);
    };
    encode("a.raw", {"--raw"});
    tensor const& record = f.at(c.name + ".record");
    CHECK((file_text(f.folder / "a.raw") == text_of(record.bytes)));

    encode("a.kvt", {"--parts", f.folder / "p"});
    run_well({"decode", f.folder / "a.kvt", f.folder / "d.npy", "--dtype", "bf16"});
    f.check_equal("d.npy", c.name + ".decoded_bf16", true);

    // The parts, against the golden record: u - 128 in two's complement, then the scales.
    auto const& shape = f.at(c.input).shape;
    auto const tokens = static_cast<std::size_t>(shape[0]);
    auto const heads = static_cast<std::size_t>(shape[1]);
    auto const codes = static_cast<std::size_t>(shape[1] * shape[2]);
    auto const stride = static_cast<std::size_t>(record.shape[1]);
    std::string u, scales;
    for (std::size_t t = 0; t < tokens; ++t) {
      std::string const row = text_of(record.bytes.subspan(t * stride, stride));
      for (std::size_t i = 0; i < codes; ++i) u += static_cast<char>(row[i] ^ '\x80');
      scales += row.substr(codes, 2 * heads);
    }
    owned_array const code_part = read_array(f.folder / "p.codes_u8.npy");
    owned_array const scale_part = read_array(f.folder / "p.scale_bf16.npy");
    CHECK((code_part.bytes == u));
    CHECK(code_part.shape == shape);
    CHECK((scale_part.bytes == scales));
    CHECK(scale_part.type == file_dtype::u16);
    CHECK(scale_part.shape == std::vector<std::int64_t>{shape[0], shape[1]});
    ++count;
  }
  CHECK(count == 5);
}

TEST_CASE("group codecs of the program are the golden ones") {
  int count = 0;
  for (golden_case const& c : golden_cases()) {
    if (c.codec != "symmetric" && c.codec != "affine" && c.codec != "hybrid") continue;
    CAPTURE(c.name);
    fixture f;
    std::string const codec = c.codec + c.bits + (c.variant.empty() ? "" : "_" + c.variant);
    run_well({"encode", input_of(c), f.folder / "a.kvt", "--codec", codec, "--along", c.along,
              "--group", c.group, "--parts", f.folder / "p"});
    // Some cases list groups instead of rows.
    f.check_parts(c, f.at(c.name + ".scale_f16").shape.size() == 2);
    run_well({"decode", f.folder / "a.kvt", f.folder / "d.npy"});
    f.check_equal("d.npy", c.name + ".decoded_f32", false);
    ++count;
  }
  CHECK(count > 70);
}

TEST_CASE("row codecs of the program are the golden ones, plain and rotated") {
  int plain = 0, rotated = 0;
  for (golden_case const& c : golden_cases()) {
    if (c.codec != "midrise" || c.input.empty()) continue;
    CAPTURE(c.name);
    fixture f;
    std::vector<std::string> arguments = {"encode", input_of(c), f.folder / "a.kvt", "--codec",
                                          "midrise" + c.bits, "--parts", f.folder / "p",
                                          // ignored by row codecs:
                                          "--along", "token", "--group", "7"};
    bool const rotate = c.name.starts_with("values_");
    if (rotate) arguments.push_back("--rotate");
    run_well(arguments);
    f.check_parts(c, true);
    if (rotate) {
      if (f.has(c.name + ".decoded_f64")) f.check_near(c.name + ".decoded_f64");
      ++rotated;
    } else {
      run_well({"decode", f.folder / "a.kvt", f.folder / "d.npy"});
      f.check_equal("d.npy", c.name + ".decoded_f32", false);
      ++plain;
    }
  }
  CHECK(plain >= 18);
  CHECK(rotated >= 24);
}

TEST_CASE("transformed keys of the program are the golden ones, and so are their scores") {
  int count = 0;
  for (golden_case const& c : golden_cases()) {
    if (!c.name.starts_with("keys_midrise")) continue;
    CAPTURE(c.name);
    fixture f;
    std::string const of = "key_transform_" + c.name.substr(c.name.find("_d") + 1);
    auto const floats = [&](std::string const& name) {
      tensor const& values = f.at(of + name);
      std::vector<float> all(values.bytes.size() / sizeof(float));
      std::memcpy(all.data(), values.bytes.data(), values.bytes.size());
      return all;
    };
    transform_file file;
    int const head_dim = static_cast<int>(f.at(of + ".center_f32").shape[0]);
    file.layers[5] = {1, head_dim, floats(".center_f32"), floats(".norm_f32"), {}};
    write_transform_file(f.folder / "t.safetensors", file);

    std::string input;
    for (golden_case const& other : golden_cases()) {
      if (other.name == of) input = input_of(other);
    }
    run_well({"encode", input, f.folder / "a.kvt", "--codec", "midrise" + c.bits, "--transform",
              (f.folder / "t.safetensors") + "::5", "--parts", f.folder / "p"});
    f.check_parts(c, true);

    tensor const& query = f.at(of + ".query_f16");
    write_npy(f.folder / "q.npy", query);
    run_well({"gemv", "qk", f.folder / "a.kvt", f.folder / "q.npy", f.folder / "s.npy"});
    owned_array const scores = read_array(f.folder / "s.npy");
    auto const is = scores.as<float>();
    auto const expected = f.doubles(c.name + ".scores_f64");
    CHECK(scores.shape == f.at(c.name + ".scores_f64").shape);
    REQUIRE(is.size() == expected.size());
    double largest = 0;
    for (double const s : expected) largest = std::max(largest, std::fabs(s));
    for (std::size_t i = 0; i < is.size(); ++i) {
      if (std::fabs(is[i] - expected[i]) > 1e-5 * largest)
        CHECK(is[i] == Catch::Approx(expected[i]));
    }
    ++count;
  }
  CHECK(count == 12);
}

}  // namespace
