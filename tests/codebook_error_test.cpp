// SPDX-License-Identifier: Apache-2.0
// How much the codebook codec errs, on Gaussian rows and on sparse ones; dense rotations.
#include "support/catch.hpp"
#include "support/rotation_matrix.hpp"
#include "support/rows.hpp"

#include <kvarts/decode.hpp>
#include <kvarts/make_layout.hpp>
#include <kvarts/quantizer/codebook.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr rotation two_rounds{2, 1};

template <class Codec>
rows coded_and_back(rows const& x, rotation const& r) {
  transform_view const t{.rotate = r};
  auto const map = make_head_tiles<Codec>(x.heads, x.head_dim, x.tokens);
  std::vector<std::byte> bytes(static_cast<std::size_t>(map.size_bytes()));
  view<Codec> const to{bytes.data(), map, {}};
  REQUIRE(encode(to, x.source(), {0, x.tokens}, t).code == status::ok);
  rows y(x.heads, x.head_dim, x.tokens);
  REQUIRE(decode(to, y.target(), {0, x.tokens}, t) == status::ok);
  return y;
}

double relative_error(rows const& x, rows const& y) {
  double errors = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    double const d = double(y.values[i]) - double(x.values[i]);
    errors += d * d;
    squares += double(x.values[i]) * double(x.values[i]);
  }
  return errors / squares;
}

/// The mean of f(t, nearest centroid) for t of this density.
template <class Centroids, class Density, class F>
double mean(Centroids const& c, double limit, Density density, F f) {
  constexpr int steps = 200000;
  double sum = 0.0, total = 0.0;
  for (int i = 0; i < steps; ++i) {
    double const t = limit * ((i + 0.5) / steps * 2.0 - 1.0);
    double nearest = 1e9;
    for (float const level : c) {
      if (std::fabs(t - double(level)) < std::fabs(t - nearest)) nearest = double(level);
    }
    sum += density(t) * f(t, nearest);
    total += density(t);
  }
  return sum / total;
}

double squared(double t, double level) { return (t - level) * (t - level); }

double gaussian(double t) { return std::exp(-0.5 * t * t); }

/// One coordinate of a random row of length sqrt(D): nearly Gaussian, with shorter tails.
auto on_sphere(int head_dim) {
  return [=](double t) { return std::pow(1.0 - t * t / head_dim, (head_dim - 3) / 2.0); };
}

template <int Bits>
constexpr double published = Bits == 2 ? 0.1175 : (Bits == 3 ? 0.03455 : 0.00950);

TEMPLATE_TEST_CASE_SIG("Gaussian rows err as Lloyd-Max levels do", "", ((int Bits), Bits), 2, 3,
                       4) {
  using as_published = codebook<Bits, float>;
  auto const& centroids = as_published::centroids;
  CHECK(mean(centroids, 9.0, gaussian, squared) == Catch::Approx(published<Bits>).epsilon(0.002));
  random_source random(test_seed());
  for (int const head_dim : {46, 64, 80, 96, 128, 512}) {
    CAPTURE(head_dim, test_seed());
    rows const x =
        normal_rows(random, 1, head_dim, (head_dim == 512 ? 1000000 : 400000) / head_dim);
    double const error = relative_error(x, coded_and_back<row_codec<as_published>>(x, two_rounds));
    double const expected = mean(centroids, std::sqrt(head_dim), on_sphere(head_dim), squared);
    CHECK(error == Catch::Approx(expected).epsilon(0.01));
    if (head_dim == 512) CHECK(error == Catch::Approx(published<Bits>).epsilon(0.01));
  }
}

TEMPLATE_TEST_CASE_SIG("the fp16 scale gives rows their length back", "", ((int Bits), Bits), 2, 3,
                       4) {
  random_source random(test_seed());
  CAPTURE(test_seed());
  rows const x = normal_rows(random, 1, 128, 1500);
  rows const y = coded_and_back<row_codec<codebook<Bits, half>>>(x, two_rounds);
  for (std::int64_t t = 0; t < x.tokens; ++t) {
    double before = 0.0, after = 0.0;
    for (int d = 0; d < x.head_dim; ++d) {
      before += double(x.at(t, 0, d)) * double(x.at(t, 0, d));
      after += double(y.at(t, 0, d)) * double(y.at(t, 0, d));
    }
    REQUIRE(std::sqrt(after / before) == Catch::Approx(1.0).margin(0x1p-11 + 1e-6));
  }
  // Rows of one length are this far apart at the angle between t and its centroids, which is a
  // little smaller than the mean one because each row has its own scale.
  auto const& c = codebook<Bits, half>::centroids;
  auto const product = [&](auto f) { return mean(c, std::sqrt(128), on_sphere(128), f); };
  double const cosine = product([](double t, double level) { return t * level; }) /
                        std::sqrt(product([](double, double level) { return level * level; }));
  CHECK(relative_error(x, y) == Catch::Approx(2.0 - 2.0 * cosine).epsilon(0.03));
}

/// Rows with one, two or four spikes; and spikes over noise.
std::vector<rows> sparse_rows(int head_dim) {
  random_source random(test_seed());
  rows one(1, head_dim, head_dim), two(1, head_dim, 3 * head_dim), few(1, head_dim, 500);
  for (int i = 0; i < head_dim; ++i) one.at(i, 0, i) = i % 2 == 0 ? 3.0f : -0.01f;
  for (int i = 0; i < 3 * head_dim; ++i) {
    two.at(i, 0, i % head_dim) = 100.0f;
    two.at(i, 0, (i + 1 + i / head_dim * 7) % head_dim) = i % 2 == 0 ? 37.0f : -100.0f;
  }
  rows noisy = normal_rows(random, 1, head_dim, 500);
  for (int i = 0; i < 500; ++i) {
    for (int k = 0; k < 4; ++k) {
      few.at(i, 0, random.between(0, head_dim - 1)) = static_cast<float>(50.0 * random.normal());
    }
    noisy.at(i, 0, random.between(0, head_dim - 1)) += 500.0f;
    noisy.at(i, 0, random.between(0, head_dim - 1)) -= 300.0f;
  }
  return {one, two, few, noisy};
}

template <int Bits>
void check_sparse(int head_dim, rotation const& r) {
  int family = 0;
  for (rows const& x : sparse_rows(head_dim)) {
    CAPTURE(Bits, head_dim, family++, test_seed());
    CHECK(relative_error(x, coded_and_back<row_codec<codebook<Bits, float>>>(x, r)) <
          1.5 * published<Bits>);
    CHECK(relative_error(x, coded_and_back<row_codec<codebook<Bits, half>>>(x, r)) <
          1.5 * published<Bits>);
  }
}

TEST_CASE("sparse rows err at most half as much again") {
  for (int const head_dim : {64, 128, 256}) {
    check_sparse<2>(head_dim, two_rounds);
    check_sparse<3>(head_dim, two_rounds);
    check_sparse<4>(head_dim, two_rounds);
  }
}

TEST_CASE("a dense rotation does the same where blocks of channels are short") {
  random_source random(test_seed());
  for (int const head_dim : {46, 80, 96}) {
    auto const dense = random_orthonormal(random, head_dim).floats();
    check_sparse<2>(head_dim, {0, 1, dense.data()});
    check_sparse<3>(head_dim, {0, 1, dense.data()});
    check_sparse<4>(head_dim, {0, 1, dense.data()});
  }
}

TEST_CASE("a dense matrix that is the Hadamard rotation codes as it does, to rounding") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (int const head_dim : {64, 80, 128, 46}) {
    CAPTURE(head_dim);
    auto const dense = rotation_matrix(2, 1, head_dim).floats();
    rotation const as_matrix{0, 1, dense.data()};
    rows const x = normal_rows(random, 1, head_dim, 40);
    detail::prepared_rotation<float> const fast(two_rounds, head_dim), slow(as_matrix, head_dim);
    float const tolerance = 1e-6f * std::sqrt(static_cast<float>(head_dim));
    for (std::int64_t t = 0; t < x.tokens; ++t) {
      auto const apart = [&](auto&& rotate) {
        std::vector<float> a(&x.values[x.index(t, 0, 0)], &x.values[x.index(t, 0, 0)] + head_dim);
        auto b = a;
        rotate(fast, a.data());
        rotate(slow, b.data());
        float largest = 0.0f;
        for (std::size_t d = 0; d < a.size(); ++d)
          largest = std::max(largest, std::fabs(a[d] - b[d]));
        return largest;
      };
      REQUIRE(apart([](auto& r, float* row) { r.forward(row); }) < tolerance);
      REQUIRE(apart([](auto& r, float* row) { r.forward_query(row); }) < tolerance);
      REQUIRE(apart([](auto& r, float* row) { r.inverse(row); }) < tolerance);
    }
    double const error =
        relative_error(x, coded_and_back<row_codec<codebook<4, float>>>(x, as_matrix));
    CHECK(error == Catch::Approx(relative_error(x, coded_and_back<row_codec<codebook<4, float>>>(
                                                       x, two_rounds)))
                       .epsilon(1e-3));
  }
}

TEST_CASE("scores do not see a dense rotation") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (int const head_dim : {46, 96, 128}) {
    CAPTURE(head_dim);
    auto const dense = random_orthonormal(random, head_dim).floats();
    auto const n = static_cast<std::size_t>(head_dim);
    std::vector<float> center(n), norm(n);
    for (float& c : center) c = static_cast<float>(10.0 * random.normal());
    for (float& s : norm) s = static_cast<float>(0.5 + random.uniform());
    transform_view const t{center.data(), norm.data(), head_dim, {0, 1, dense.data()}};
    rows const q = normal_rows(random, 1, head_dim, 20), k = normal_rows(random, 1, head_dim, 20);
    detail::prepared_transform const prepared(t, head_dim);
    std::vector<float> folded(n);
    for (std::int64_t i = 0; i < 20; ++i) {
      std::vector<float> y(&k.values[k.index(i, 0, 0)], &k.values[k.index(i, 0, 0)] + head_dim);
      double score = fold_query(t, 0, head_dim, &q.values[q.index(i, 0, 0)], folded.data());
      prepared.normalize(0, y.data(), true);
      prepared.rotate(y.data());
      double exact = 0.0, size = 0.0;
      for (std::size_t d = 0; d < n; ++d) {
        double const product =
            double(q.values[q.index(i, 0, int(d))]) * double(k.values[k.index(i, 0, int(d))]);
        score += double(folded[d]) * double(y[d]);
        exact += product;
        size += std::fabs(product) +
                std::fabs(double(q.values[q.index(i, 0, int(d))]) * double(center[d]));
      }
      REQUIRE(std::fabs(score - exact) < 2e-6 * size);
      prepared.to_model(0, y.data());
      for (std::size_t d = 0; d < n; ++d) {
        REQUIRE(y[d] == Catch::Approx(k.values[k.index(i, 0, int(d))]).margin(1e-4));
      }
    }
  }
}

}  // namespace
