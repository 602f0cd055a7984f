// SPDX-License-Identifier: Apache-2.0
/// @file
/// The rotation of codecs.md by its definition, as a matrix in float64.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace kvarts::test {

/// -1 or 1: the sign of a channel in a round.
inline double plain_sign(std::uint64_t seed, int round, int channel) {
  std::uint64_t z =
      seed + static_cast<std::uint64_t>(1 + channel / 64 + 16 * round) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return ((z >> (channel % 64)) & 1u) != 0 ? -1.0 : 1.0;
}

/// lg of the largest power of two that divides n.
inline int block_bits(int n) { return std::countr_zero(static_cast<unsigned>(n)); }

/// Signs, then a Hadamard matrix for each block, unscaled; `rounds` times.
inline std::vector<double> plain_butterflies(std::vector<double> x, std::uint64_t seed,
                                             int rounds) {
  int const head_dim = static_cast<int>(x.size());
  int const block = 1 << block_bits(head_dim);
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> y(x.size());
    for (int i = 0; i < head_dim; ++i) {
      for (int j = i / block * block; j < i / block * block + block; ++j) {
        int const shared = std::popcount(static_cast<unsigned>((i % block) & (j % block)));
        double const h = shared % 2 == 0 ? 1.0 : -1.0;
        auto const at = static_cast<std::size_t>(j);
        y[static_cast<std::size_t>(i)] += h * plain_sign(seed, round, j) * x[at];
      }
    }
    x = y;
  }
  return x;
}

/// R x for rows, and R^-T q for queries: the halves of an odd exponent differ.
inline std::vector<double> plain_rotate(std::vector<double> x, std::uint64_t seed, int rounds,
                                        bool query) {
  int const total = rounds * block_bits(static_cast<int>(x.size()));
  int const exponent = query ? total - total / 2 : total / 2;
  x = plain_butterflies(std::move(x), seed, rounds);
  for (double& v : x) v = std::ldexp(v, -exponent);
  return x;
}

}  // namespace kvarts::test
