// SPDX-License-Identifier: Apache-2.0
// Products on codes against float64 on the numbers that a second reader finds in the same bytes, to
// the error bounds that gemv.hpp states.
#include "support/any_codec.hpp"
#include "support/catch.hpp"
#include "support/coded_reader.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr double unit = 0x1p-24;

struct shape {
  int heads, query_heads, head_dim, group, tile_tokens;
  std::int64_t tokens;
  arrangement arranged;
};

coded_format format_of(any_codec const& c, shape const& s) {
  coded_format f;
  f.name = c.info.name;
  f.bits = c.info.bits;
  f.along = static_cast<parameter_axis>(c.info.grouped_along);
  f.arranged = s.arranged;
  f.heads = s.heads;
  f.head_dim = s.head_dim;
  f.group = s.group;
  f.tile_tokens = s.arranged == arrangement::row_records ? 1 : s.tile_tokens;
  f.alignment = 64;
  f.tokens = s.tokens;
  return f;
}

layout layout_of(any_codec const& c, shape const& s) {
  if (s.arranged == arrangement::row_records) {
    return c.row_records(s.heads, s.head_dim, s.tokens, 64, s.group);
  }
  return c.head_tiles(s.heads, s.head_dim, s.tokens, {s.tile_tokens, s.group, 64});
}

std::vector<float> normals(random_source& random, std::size_t count) {
  std::vector<float> v(count);
  for (float& x : v) x = static_cast<float>(random.normal());
  return v;
}

/// The reader's numbers as the decoder rounds them: one addition of float32 (codebooks: two
/// products).
struct oracle {
  coded_reader reader;
  bool rounds_products;  ///< `value` and the library may differ by roundings

  double value(int head, std::int64_t token, int channel) const {
    double const v = reader.value(head, token, channel);
    return rounds_products ? v : static_cast<double>(static_cast<float>(v));
  }
};

void check_scores(oracle const& o, shape const& s, token_range r, std::vector<float> const& q,
                  std::vector<double> const& bias, std::vector<float> const& scores) {
  for (int i = 0; i < s.query_heads; ++i) {
    int const head = static_cast<int>(std::int64_t{i} * s.heads / s.query_heads);
    for (std::int64_t t = r.begin; t < r.end; ++t) {
      double sum = 0.0, magnitudes = 0.0;
      for (int d = 0; d < s.head_dim; ++d) {
        double const product =
            static_cast<double>(q[static_cast<std::size_t>(i * s.head_dim + d)]) *
            o.value(head, t, d);
        sum += product;
        magnitudes += std::fabs(product);
      }
      double const exact = sum + bias[static_cast<std::size_t>(i)];
      double const steps = s.head_dim / 16 + 6 + (o.rounds_products ? 4 : 0);
      double const bound = steps * unit * magnitudes + unit * std::fabs(exact) + 1e-44;
      auto const at = static_cast<std::size_t>(i * r.size() + t - r.begin);
      REQUIRE(std::fabs(scores[at] - exact) <= bound);
    }
  }
}

void check_outputs(oracle const& o, shape const& s, token_range r, std::vector<float> const& p,
                   std::vector<float> const& output) {
  for (int i = 0; i < s.query_heads; ++i) {
    int const head = static_cast<int>(std::int64_t{i} * s.heads / s.query_heads);
    for (int d = 0; d < s.head_dim; ++d) {
      double sum = 0.0, magnitudes = 0.0;
      for (std::int64_t t = r.begin; t < r.end; ++t) {
        double const product =
            static_cast<double>(p[static_cast<std::size_t>(i * r.size() + t - r.begin)]) *
            o.value(head, t, d);
        sum += product;
        magnitudes += std::fabs(product);
      }
      double const steps =
          static_cast<double>(r.size() / 32 + 33) + (o.rounds_products ? 4.0 : 0.0);
      double const at = output[static_cast<std::size_t>(i * s.head_dim + d)];
      REQUIRE(std::fabs(at - sum) <= steps * unit * magnitudes + 1e-44);
    }
  }
}

void check_products(any_codec const& c, shape const& s, random_source& random, double size) {
  CAPTURE(c.name(), s.heads, s.query_heads, s.head_dim, s.group, s.tile_tokens, s.tokens);
  layout const m = layout_of(c, s);
  rows x = normal_rows(random, s.heads, s.head_dim, s.tokens);
  for (float& value : x.values) value = static_cast<float>(value * size);
  auto const bytes = encoded(c, m, x.source(), {}, std::byte{0xFF});
  coded<std::byte const> const v{bytes.data(), m, {}};
  oracle const o{coded_reader(format_of(c, s), bytes.data()),
                 c.name().find("codebook") != std::string::npos};

  std::int64_t const begin = random.between(0, static_cast<int>(s.tokens) / 2);
  for (token_range const r : {token_range{0, s.tokens}, {begin, s.tokens}}) {
    auto const columns = static_cast<std::size_t>(s.query_heads * r.size());
    auto const width = static_cast<std::size_t>(s.query_heads * s.head_dim);
    auto const q = normals(random, width);
    std::vector<double> bias(static_cast<std::size_t>(s.query_heads));
    for (double& b : bias) b = random.normal() * size;
    std::vector<float> scores(columns);
    REQUIRE(c.gemv_qk(v, r, s.query_heads, q.data(), bias.data(), scores.data()) == status::ok);
    check_scores(o, s, r, q, bias, scores);

    auto const p = normals(random, columns);
    std::vector<float> output(width, 777.0f);
    REQUIRE(c.gemv_pv(v, r, s.query_heads, p.data(), output.data()) == status::ok);
    check_outputs(o, s, r, p, output);
  }
}

shape random_shape(any_codec const& c, random_source& random, int head_dim) {
  int const groups[] = {16, 32, 48, 64, 128};
  shape s{};
  s.heads = random.between(1, 3);
  s.query_heads = s.heads * random.between(1, 3);
  s.head_dim = head_dim;
  s.group = groups[random.between(0, 4)];
  s.tile_tokens = c.along_tokens() ? s.group : random.between(1, 40);
  s.tokens = random.between(1, 70);
  bool const records = c.row_records != nullptr && random.between(0, 1) == 1;
  s.arranged = records ? arrangement::row_records : arrangement::head_tiles;
  return s;
}

TEST_CASE("products of every codec keep their error bounds") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  int const dims[] = {46, 64, 80, 96, 100, 128};
  for (double const size : {1.0, 300.0, 1e-3}) {
    for (auto const& c : all_codecs()) {
      shape const s = random_shape(c, random, dims[random.between(0, 5)]);
      check_products(c, s, random, size);
    }
  }
}

TEST_CASE("products in large head_dims") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  int const dims[] = {192, 256, 512, 576, 1024};
  for (auto const& c : all_codecs()) {
    shape s = random_shape(c, random, dims[random.between(0, 4)]);
    s.query_heads = s.heads = 1;
    s.tokens = 33;
    check_products(c, s, random, 1.0);
  }
}

TEST_CASE("large numbers stay finite") {
  using by_channel = codec<affine<4>, axis::channel>;
  // q = k = 300 in all of D = 128.
  layout const m = make_head_tiles<by_channel>(1, 128, 1);
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
  view<by_channel> const v{bytes.data(), m, {}};
  REQUIRE(encode(v, rows(1, 128, 1, 300.0f).source(), {0, 1}).code == status::ok);
  std::vector<float> const q(128, 300.0f);
  float score = 0.0f;
  REQUIRE(gemv_qk(v, {0, 1}, 1, q.data(), nullptr, &score) == status::ok);
  CHECK(score == 11520000.0f);
}

TEST_CASE("a query of zeros scores zero, with the bias alone") {
  using by_token = codec<affine<3>, axis::token>;
  layout const m = make_head_tiles<by_token>(2, 46, 40);
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
  view<by_token> const v{bytes.data(), m, {}};
  random_source random(test_seed());
  REQUIRE(encode(v, normal_rows(random, 2, 46, 40).source(), {0, 40}).code == status::ok);
  std::vector<float> const q(4 * 46, 0.0f);
  std::vector<float> scores(4 * 40, 777.0f);
  REQUIRE(gemv_qk(v, {0, 40}, 4, q.data(), nullptr, scores.data()) == status::ok);
  CHECK(scores == std::vector<float>(4 * 40, 0.0f));
  double const bias[] = {1.0, -2.5, 1e4, 0.1};
  REQUIRE(gemv_qk(v, {0, 40}, 4, q.data(), bias, scores.data()) == status::ok);
  for (std::size_t i = 0; i < scores.size(); ++i)
    REQUIRE(scores[i] == static_cast<float>(bias[i / 40]));
}

}  // namespace
