// SPDX-License-Identifier: Apache-2.0
// `kvarts gemv` on several heads and awkward shapes, against float64 products with the rows that a
// second reader decodes.
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

TEST_CASE("gemv qk is the product of plain queries with decoded keys") {
  CAPTURE(test_seed());
  for (example const& e : examples) {
    CAPTURE(e.codec, e.along, e.head_dim);
    encoded const x(e);
    random_source random(test_seed());
    int const query_heads = 3 * e.heads;
    rows const q = normal_rows(random, query_heads, e.head_dim, 1);
    write_array(x.folder / "q.npy", file_dtype::f32, {query_heads, e.head_dim}, q.values);
    run_well({"gemv", "qk", x.folder / "a.kvt", x.folder / "q.npy", x.folder / "s.npy"});
    owned_array const scores = read_array(x.folder / "s.npy");
    REQUIRE(scores.shape == std::vector<std::int64_t>{query_heads, e.tokens});
    auto const is = scores.as<float>();
    double worst = 0;
    for (int i = 0; i < query_heads; ++i) {
      int const h = i / 3;
      for (std::int64_t t = 0; t < e.tokens; ++t) {
        double expected = 0, bias = 0;
        std::vector<double> scaled;
        for (int d = 0; d < e.head_dim; ++d) {
          double const of_query = q.at(0, i, d);
          expected += of_query * x.row(t, h)[static_cast<std::size_t>(d)];
          bias += std::fabs(of_query * x.center(h, d));
          scaled.push_back(of_query * x.norm(h, d));
        }
        double const scale = length(scaled) * length(x.coded_row(t, h)) *
                                 std::sqrt(static_cast<double>(e.head_dim)) +
                             bias + 1e-30;
        double const score = is[static_cast<std::size_t>(i * e.tokens + t)];
        worst = std::max(worst, std::fabs(score - expected) / scale);
      }
    }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("gemv pv is the weighted sum of decoded values") {
  CAPTURE(test_seed());
  for (example const& e : examples) {
    CAPTURE(e.codec, e.along, e.head_dim);
    encoded const x(e);
    random_source random(test_seed());
    int const query_heads = 2 * e.heads;
    std::vector<double> p;  // a float64 array is taken too
    for (std::int64_t i = 0; i < query_heads * e.tokens; ++i) p.push_back(random.uniform());
    write_array(x.folder / "p.npy", file_dtype::f64, {query_heads, e.tokens}, p);
    run_well({"gemv", "pv", x.folder / "a.kvt", x.folder / "p.npy", x.folder / "o.npy"});
    owned_array const outputs = read_array(x.folder / "o.npy");
    REQUIRE(outputs.shape == std::vector<std::int64_t>{query_heads, e.head_dim});
    auto const is = outputs.as<float>();
    double worst = 0;
    for (int i = 0; i < query_heads; ++i) {
      int const h = i / 2;
      for (int d = 0; d < e.head_dim; ++d) {
        double expected = 0, scale = 1e-30;
        for (std::int64_t t = 0; t < e.tokens; ++t) {
          double const weight = p[static_cast<std::size_t>(i * e.tokens + t)];
          expected += weight * x.row(t, h)[static_cast<std::size_t>(d)];
          scale += weight * (x.norm(h, d) * length(x.coded_row(t, h)) *
                                 std::sqrt(static_cast<double>(e.head_dim)) +
                             std::fabs(x.center(h, d)));
        }
        double const output = is[static_cast<std::size_t>(i * e.head_dim + d)];
        worst = std::max(worst, std::fabs(output - expected) / scale);
      }
    }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("one query of a cache of one head may lack the axis of heads") {
  example const e = examples[3];
  encoded const x(e);
  random_source random(test_seed());
  rows const q = normal_rows(random, 1, e.head_dim, 1);
  write_array(x.folder / "q.npy", file_dtype::f32, {e.head_dim}, q.values);
  write_array(x.folder / "q2.npy", file_dtype::f32, {1, e.head_dim}, q.values);
  run_well({"gemv", "qk", x.folder / "a.kvt", x.folder / "q.npy", x.folder / "s.npy"});
  run_well({"gemv", "qk", x.folder / "a.kvt", x.folder / "q2.npy", x.folder / "s2.npy"});
  CHECK((file_text(x.folder / "s.npy") == file_text(x.folder / "s2.npy")));
}

}  // namespace
