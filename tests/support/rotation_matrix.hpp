// SPDX-License-Identifier: Apache-2.0
/// @file
/// Orthonormal matrices in float64: those of the codecs' rotation, and random ones.
#pragma once

#include "support/plain_rotation.hpp"
#include "support/random.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace kvarts::test {

/// A square matrix.
struct matrix {
  int size = 0;
  std::vector<double> entries;  // [row, column]

  explicit matrix(int n)
      : size(n), entries(static_cast<std::size_t>(n) * static_cast<std::size_t>(n)) {}

  double* row(int i) {
    return entries.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(size);
  }
  double const* row(int i) const { return const_cast<matrix*>(this)->row(i); }

  /// M^T x, for `x[size]`.
  std::vector<double> transposed_times(std::vector<double> const& x) const {
    std::vector<double> y(x.size());
    for (int i = 0; i < size; ++i) {
      for (int j = 0; j < size; ++j) {
        y[static_cast<std::size_t>(j)] += row(i)[j] * x[static_cast<std::size_t>(i)];
      }
    }
    return y;
  }
  std::vector<float> floats() const { return {entries.begin(), entries.end()}; }
};

/// The orthonormal part of the codecs' rotation; rows are stored `rotation_gain` times as long.
inline matrix rotation_matrix(int rounds, std::uint64_t seed, int size) {
  matrix r(size);
  double const length = std::pow(2.0, 0.5 * rounds * block_bits(size));
  for (int j = 0; j < size; ++j) {
    std::vector<double> unit(static_cast<std::size_t>(size));
    unit[static_cast<std::size_t>(j)] = 1.0;
    auto const column = plain_butterflies(unit, seed, rounds);
    for (int i = 0; i < size; ++i) r.row(i)[j] = column[static_cast<std::size_t>(i)] / length;
  }
  return r;
}

/// No irrational factor enters the codecs' rotation: an odd power of sqrt(2) is left to queries.
inline double rotation_gain(int rounds, int size) {
  return rounds * block_bits(size) % 2 != 0 ? std::sqrt(2.0) : 1.0;
}

/// The Q of a Gaussian matrix's QR, by Gram and Schmidt, twice.
inline matrix random_orthonormal(random_source& random, int size) {
  matrix q(size);
  for (double& entry : q.entries) entry = random.normal();
  for (int i = 0; i < size; ++i) {
    double* const x = q.row(i);
    for (int k = 0; k < 2 * i; ++k) {
      double const* const y = q.row(k % i);
      double product = 0.0;
      for (int j = 0; j < size; ++j) product += x[j] * y[j];
      for (int j = 0; j < size; ++j) x[j] -= product * y[j];
    }
    double squares = 0.0;
    for (int j = 0; j < size; ++j) squares += x[j] * x[j];
    for (int j = 0; j < size; ++j) x[j] /= std::sqrt(squares);
  }
  return q;
}

}  // namespace kvarts::test
