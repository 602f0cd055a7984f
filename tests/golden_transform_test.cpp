// SPDX-License-Identifier: Apache-2.0
// The golden vectors of transforms: keys behind center, norm and rotation, rotated values, InnerQ's
// norm; what the quantizer sees and stores bit for bit, float64 results to 1e-6.
#include "support/catch.hpp"
#include "support/coded_ways.hpp"
#include "support/golden_checks.hpp"
#include "support/plain_rotation.hpp"

#include <kvarts/calibrate.hpp>
#include <kvarts/codec_list.hpp>
#include <kvarts/gemv.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr rotation one_round{1, 1};
constexpr double tolerance = 1e-6;  // of float64 results, relative

/// Largest |a - b| / |b|.
double relative_difference(std::vector<double> const& a, std::vector<double> const& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) largest = std::max(largest, std::fabs(a[i] - b[i]) / std::fabs(b[i]));
  }
  return largest;
}

/// A golden key transform: center, norm and one round of rotation.
transform key_transform_of(golden_reader& golden, std::string const& name) {
  auto center = golden.numbers<float>(name + ".center_f32");
  auto norm = golden.numbers<float>(name + ".norm_f32");
  auto const head_dim = static_cast<int>(center.size());
  return {1, head_dim, std::move(center), std::move(norm), one_round};
}

/// The rows as they enter a mid-rise quantizer.
std::vector<float> coded_space(source_view const& source, transform_view const& t) {
  auto rows = make_finite_rows(source).values;
  int const head_dim = source.map.head_dim;
  detail::prepared_transform const prepared(t, head_dim);
  for (std::size_t at = 0; at < rows.size(); at += static_cast<std::size_t>(head_dim)) {
    detail::to_coded<midrise<4>>(prepared, 0, &rows[at], head_dim);
  }
  return rows;
}

void check_key_norms(golden_reader& golden, golden_case const& c) {
  auto const input = golden.input(c.input);
  source_view const keys = input.source();
  CHECK(first_difference(innerq_norm(keys, keys.map.tokens).norm,
                         golden.numbers<float>(c.name + ".norm_f32")) == no_difference);
}

void check_key_transform(golden_reader& golden, golden_case const& c) {
  transform const t = key_transform_of(golden, c.name);
  auto const input = golden.input(c.input);
  source_view const keys = input.source();
  CHECK(first_difference(coded_space(keys, t.view()),
                         golden.numbers<float>(c.name + ".transformed_f32")) == no_difference);

  auto queries = make_finite_rows(golden.input(c.name + ".query_f16").source()).values;
  std::vector<double> bias;
  for (std::size_t at = 0; at < queries.size(); at += t.center.size()) {
    bias.push_back(fold_query(t.view(), 0, t.head_dim, &queries[at], &queries[at]));
  }
  CHECK(first_difference(queries, golden.numbers<float>(c.name + ".folded_query_f32")) ==
        no_difference);
  CHECK(relative_difference(bias, golden.numbers<double>(c.name + ".bias_f64")) <= tolerance);
}

/// Codes and scales of transformed rows: the quantizer alone, row records and head tiles. Returns
/// what decoding in coded space gives.
template <class Codec>
std::vector<float> check_codes(golden_reader& golden, golden_case const& c,
                               source_view const& source, transform_view const& t) {
  auto const codes = golden.numbers<std::uint8_t>(c.name + ".codes_u8");
  auto const scales = golden.numbers<half>(c.name + ".scale_f16");
  auto const nonfinite = make_finite_rows(source).nonfinite;
  auto const alone = quantize_groups<Codec>(coded_space(source, t), source.map.head_dim, 0);
  auto ways = encode_ways<Codec>(source, 0, t);
  for (auto const& way : ways) CHECK(way.nonfinite == nonfinite);
  ways.push_back(alone);
  for (auto const& way : ways) {
    CHECK(first_difference(way.codes, codes) == no_difference);
    CHECK(first_difference(way.scales, scales) == no_difference);
    CHECK(first_difference(way.decoded, alone.decoded) == no_difference);
  }
  return alone.decoded;
}

/// The input of the case of this name; cases of coded keys have none of their own.
std::string input_of(std::string const& name) {
  auto const cases = golden_cases();
  auto const found = std::find_if(cases.begin(), cases.end(),
                                  [&](golden_case const& c) { return c.name == name; });
  REQUIRE(found != cases.end());
  return found->input;
}

/// Scores of folded queries on decoded rows, in float64, and the largest error that `gemv_qk`
/// allows itself in each.
struct score_oracle {
  std::vector<double> scores;
  std::vector<double> bounds;
};

score_oracle score_in_float64(std::vector<float> const& queries, std::vector<double> const& bias,
                              std::vector<float> const& rows) {
  score_oracle out;
  std::size_t const head_dim = queries.size() / bias.size();
  for (std::size_t i = 0; i < bias.size(); ++i) {
    for (std::size_t at = 0; at < rows.size(); at += head_dim) {
      double sum = 0.0;
      double magnitudes = 0.0;
      for (std::size_t d = 0; d < head_dim; ++d) {
        double const product = double{queries[i * head_dim + d]} * rows[at + d];
        sum += product;
        magnitudes += std::fabs(product);
      }
      double const terms = static_cast<double>(head_dim) / 16 + 6;
      out.scores.push_back(sum + bias[i]);
      out.bounds.push_back(terms * 0x1p-24 * magnitudes + 0x1p-24 * std::fabs(sum + bias[i]));
    }
  }
  return out;
}

template <class Codec>
void check_coded_keys(golden_reader& golden, golden_case const& c) {
  std::string const transform_name = "key_transform" + c.name.substr(c.name.rfind('_'));
  transform const t = key_transform_of(golden, transform_name);
  auto const input = golden.input(input_of(transform_name));
  source_view const keys = input.source();
  auto const rows = check_codes<Codec>(golden, c, keys, t.view());

  auto const queries = golden.numbers<float>(transform_name + ".folded_query_f32");
  auto const bias = golden.numbers<double>(transform_name + ".bias_f64");
  auto const expected = score_in_float64(queries, bias, rows);
  CHECK(relative_difference(expected.scores, golden.numbers<double>(c.name + ".scores_f64")) <=
        tolerance);

  std::int64_t const tokens = keys.map.tokens;
  poisoned<Codec> tiles(make_head_tiles<Codec>(1, t.head_dim, tokens));
  encode_all(tiles, keys, t.view());
  std::vector<float> scores(expected.scores.size());
  REQUIRE(gemv_qk(tiles.view, {0, tokens}, static_cast<int>(bias.size()), queries.data(),
                  bias.data(), scores.data()) == status::ok);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    CAPTURE(i, scores[i], expected.scores[i]);
    CHECK(std::fabs(scores[i] - expected.scores[i]) <= expected.bounds[i]);
  }
}

/// `decode` to model space, float32: seven butterflies and two scalings of a row may each round.
template <class Codec>
void check_decode(source_view const& source, transform_view const& t,
                  std::vector<double> const& expected) {
  layout const& m = source.map;
  poisoned<Codec> records(make_row_records<Codec>(1, m.head_dim, m.tokens));
  encode_all(records, source, t);
  std::vector<float> rows(expected.size());
  REQUIRE(decode(records.view, make_tensor(rows.data(), 1, m.head_dim, m.tokens), {0, m.tokens},
                 t) == status::ok);
  auto const width = static_cast<std::size_t>(m.head_dim);
  for (std::size_t at = 0; at < rows.size(); at += width) {
    double square = 0.0;
    double error = 0.0;
    for (std::size_t i = at; i < at + width; ++i) {
      square += expected[i] * expected[i];
      error = std::max(error, std::fabs(rows[i] - expected[i]));
    }
    CAPTURE(at / width);
    CHECK(error <= tolerance * std::sqrt(square));
  }
}

/// R^-1 of every row, in float64: channel j is the product with R^-T of the unit vector j.
std::vector<double> rotated_back(std::vector<float> const& rows, int head_dim) {
  auto const width = static_cast<std::size_t>(head_dim);
  std::vector<std::vector<double>> products;
  for (std::size_t j = 0; j < width; ++j) {
    std::vector<double> unit(width);
    unit[j] = 1.0;
    products.push_back(plain_rotate(unit, one_round.seed, one_round.rounds, true));
  }
  std::vector<double> back;
  for (auto row = rows.begin(); row != rows.end(); row += head_dim) {
    for (auto const& with : products) {
      back.push_back(std::inner_product(with.begin(), with.end(), row, 0.0));
    }
  }
  return back;
}

template <class Codec>
void check_rotated_values(golden_reader& golden, golden_case const& c) {
  auto const input = golden.input(c.input);
  source_view const values = input.source();
  transform_view const t{nullptr, nullptr, 0, one_round};
  if (golden.has(c, "transformed_f32")) {
    CHECK(first_difference(coded_space(values, t),
                           golden.numbers<float>(c.name + ".transformed_f32")) == no_difference);
  }
  auto const rows = check_codes<Codec>(golden, c, values, t);
  if (!golden.has(c, "decoded_f64")) return;

  auto const expected = golden.numbers<double>(c.name + ".decoded_f64");
  CHECK(relative_difference(rotated_back(rows, values.map.head_dim), expected) <= tolerance);
  check_decode<Codec>(values, t, expected);
}

void run(golden_reader& golden, golden_case const& c) {
  if (kind_of(c) == golden_kind::key_norms) return check_key_norms(golden, c);
  if (kind_of(c) == golden_kind::key_transform) return check_key_transform(golden, c);
  bool const keys = kind_of(c) == golden_kind::coded_keys;
  bool found = false;
  detail::for_each_type(row_codecs{}, [&](auto tag) {
    using codec = typename decltype(tag)::type;
    if (found || std::string_view(codec::name()) != codec_name_of(c)) return;
    if constexpr (has_half_scales<codec>) {
      found = true;
      keys ? check_coded_keys<codec>(golden, c) : check_rotated_values<codec>(golden, c);
    }
  });
  CHECK(found);
}

TEST_CASE("every golden case of a transform holds") {
  golden_reader golden;
  std::map<golden_kind, int> ran;
  for (golden_case const& c : golden_cases()) {
    auto const kind = kind_of(c);
    bool const ours = kind == golden_kind::key_norms || kind == golden_kind::key_transform ||
                      kind == golden_kind::coded_keys || kind == golden_kind::rotated_values;
    if (!ours) continue;
    INFO("case " << c.name);
    run(golden, c);
    CHECK(golden.unread(c) == std::vector<std::string>{});
    ++ran[kind];
  }
  CHECK(ran[golden_kind::key_norms] == 1);
  CHECK(ran[golden_kind::key_transform] == 4);
  CHECK(ran[golden_kind::coded_keys] == 12);
  CHECK(ran[golden_kind::rotated_values] == 25);
}

}  // namespace
