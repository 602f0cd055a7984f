// SPDX-License-Identifier: Apache-2.0
// The codebook codec (TurboQuant) stores the golden bytes and decodes them; rows at the edges.
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/rows.hpp"

#include <kvarts/decode.hpp>
#include <kvarts/make_layout.hpp>
#include <kvarts/quantizer/codebook.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr transform_view turned{.rotate = {2, 1}};

/// One head coded in a tile layout: codes, scales, and the rows that come back.
template <class Codec>
struct coding {
  layout map;
  std::vector<std::byte> bytes;

  coding(source_view rows, transform_view const& t)
      : map(make_head_tiles<Codec>(rows.map.heads, rows.map.head_dim, rows.map.tokens)),
        bytes(static_cast<std::size_t>(map.size_bytes())) {
    auto const result = encode(writer(), rows, {0, rows.map.tokens}, t);
    REQUIRE(result.code == status::ok);
  }

  view<Codec> writer() { return {bytes.data(), map, {}}; }
  view<Codec, std::byte const> reader() const { return {bytes.data(), map, {}}; }

  std::vector<std::uint8_t> codes(std::int64_t tokens) const {
    auto const head_dim = static_cast<std::size_t>(map.head_dim);
    std::vector<std::uint8_t> all(static_cast<std::size_t>(tokens) * head_dim);
    for (std::int64_t t = 0; t < tokens; ++t) {
      load_codes(reader(), 0, t, all.data() + static_cast<std::size_t>(t) * head_dim);
    }
    return all;
  }
  auto scale(std::int64_t token) const { return load_parameters(reader(), 0, token, 0).scale; }

  rows decoded(std::int64_t tokens, transform_view const& t) const {
    rows r(map.heads, map.head_dim, tokens);
    REQUIRE(decode(reader(), r.target(), {0, tokens}, t) == status::ok);
    return r;
  }
};

template <int Bits, class Scale>
void check_golden(golden_file const& golden, golden_case const& c) {
  CAPTURE(c.name);
  auto const shape = golden.shape(c.input);
  std::int64_t const tokens = shape.at(0);
  int const head_dim = static_cast<int>(shape.at(1));
  auto const input = golden.values<half>(c.input);
  coding<row_codec<codebook<Bits, Scale>>> const coded(
      make_tensor(input.data(), 1, head_dim, tokens), turned);

  CHECK((coded.codes(tokens) == golden.values<std::uint8_t>(c.name + ".codes_u8")));
  using scale_bits = std::conditional_t<sizeof(Scale) == 4, std::uint32_t, std::uint16_t>;
  auto const scales = golden.values<scale_bits>(
      c.name + (sizeof(Scale) == 4 ? ".row_scale_f32" : ".row_scale_f16"));
  auto const rotated = golden.values<float>(c.name + ".rotated_f32");  // decoded, in coded space
  auto const expected = golden.values<double>(c.name + ".decoded_f64");
  rows const decoded = coded.decoded(tokens, turned);
  for (std::int64_t t = 0; t < tokens; ++t) {
    CAPTURE(t);
    auto const at = static_cast<std::size_t>(t * head_dim);
    CHECK(std::bit_cast<scale_bits>(coded.scale(t)) == scales[static_cast<std::size_t>(t)]);
    std::vector<float> row(static_cast<std::size_t>(head_dim));
    decode_row(coded.reader(), 0, t, row.data());
    CHECK(std::equal(row.begin(), row.end(), rotated.begin() + t * head_dim));
    double largest = 0.0, difference = 0.0;
    for (std::size_t d = 0; d < row.size(); ++d) {
      largest = std::max(largest, std::fabs(expected[at + d]));
      difference = std::max(difference, std::fabs(decoded.values[at + d] - expected[at + d]));
    }
    CHECK(difference <= 1e-6 * largest);
  }
}

TEST_CASE("codebook codes, scales and decoded rows are the golden ones") {
  golden_file const golden;
  int count = 0;
  for (golden_case const& c : golden_cases()) {
    if (c.codec != "codebook") continue;
    bool const single = c.variant == "fp32 norm";
    if (c.bits == "2")
      single ? check_golden<2, float>(golden, c) : check_golden<2, half>(golden, c);
    if (c.bits == "3")
      single ? check_golden<3, float>(golden, c) : check_golden<3, half>(golden, c);
    if (c.bits == "4")
      single ? check_golden<4, float>(golden, c) : check_golden<4, half>(golden, c);
    ++count;
  }
  CHECK(count == 18);
}

TEMPLATE_TEST_CASE("rows of zeros come back as zeros", "", (codebook<2, float>),
                   (codebook<3, half>), (codebook<4, half>)) {
  for (float const zero : {0.0f, -0.0f, 1e-30f}) {  // squares of 1e-30 are 0
    rows const x(1, 80, 3, zero);
    coding<row_codec<TestType>> const coded(x.source(), turned);
    for (float const y : coded.decoded(3, turned).values) CHECK(y == 0.0f);
    for (auto const u : coded.codes(3)) CHECK(u == TestType::levels / 2 - 1);  // midpoints below 0
    CHECK(static_cast<float>(coded.scale(1)) == 0.0f);
  }
}

TEMPLATE_TEST_CASE("rows at the edges of the input types stay finite", "", (codebook<2, float>),
                   (codebook<4, float>), (codebook<3, half>)) {
  constexpr int head_dim = 46;
  float const nan = std::nanf("");
  rows x(1, head_dim, 6, 1.0f);
  for (int d = 0; d < head_dim; ++d) {
    x.at(0, 0, d) = d % 2 == 0 ? 3e38f : -3e38f;
    x.at(1, 0, d) = 65504.0f;
    x.at(2, 0, d) = 0x1p-126f;
    x.at(4, 0, d) = 1e-7f * static_cast<float>(d + 1);
  }
  x.at(3, 0, 7) = nan;
  rows in = x;
  in.at(0, 0, 5) = -INFINITY;
  auto const map = make_head_tiles<row_codec<TestType>>(1, head_dim, 6);
  std::vector<std::byte> bytes(static_cast<std::size_t>(map.size_bytes()));
  view<row_codec<TestType>> const to{bytes.data(), map, {}};
  auto const result = encode(to, in.source(), {0, 6}, turned);
  CHECK(result.code == status::ok);
  CHECK(result.nonfinite == 2);
  rows y(1, head_dim, 6);
  REQUIRE(decode(to, y.target(), {0, 6}, turned) == status::ok);
  for (float const v : y.values) CHECK(std::isfinite(v));

  // A row beyond +-65504 is coded as the row clamped to it, and so is one with an infinity.
  rows clamped = x;
  for (int d = 0; d < head_dim; ++d) clamped.at(0, 0, d) = d % 2 == 0 ? 65504.0f : -65504.0f;
  clamped.at(3, 0, 7) = 0.0f;
  coding<row_codec<TestType>> const expected(clamped.source(), turned);
  CHECK((bytes == expected.bytes));
}

TEST_CASE("a scale above fp16's range saturates, a float scale does not") {
  rows const x(1, 64, 1, 65504.0f);  // length 524032
  coding<row_codec<codebook<4, half>>> const narrow(x.source(), turned);
  coding<row_codec<codebook<4, float>>> const wide(x.source(), turned);
  CHECK(static_cast<float>(narrow.scale(0)) == 65504.0f);
  CHECK(wide.scale(0) == 8.0f * 65504.0f);
}

TEST_CASE("centroids and names") {
  // Lloyd-Max: each centroid is the mean of N(0, 1) between its neighbours' midpoints.
  auto const density = [](double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI); };
  auto const below = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  auto const check = [&](auto const& c) {
    for (std::size_t i = 0; i < c.size(); ++i) {
      double const low = i == 0 ? -40.0 : (double(c[i - 1]) + double(c[i])) / 2.0;
      double const high = i + 1 == c.size() ? 40.0 : (double(c[i]) + double(c[i + 1])) / 2.0;
      double const mean = (density(low) - density(high)) / (below(high) - below(low));
      CHECK(double(c[i]) == Catch::Approx(mean).margin(2e-7));
      CHECK(c[i] == -c[c.size() - 1 - i]);
    }
  };
  check(codebook<2, float>::centroids);
  check(codebook<3, float>::centroids);
  check(codebook<4, half>::centroids);
  CHECK(std::string_view(codebook<3, float>::name()) == "codebook3_f32");
  CHECK(std::string_view(codebook<2, half>::name()) == "codebook2_f16");
}

}  // namespace
