// SPDX-License-Identifier: Apache-2.0
/// @file
/// Random numbers that are the same on every standard library, and the seed to print with them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numbers>

namespace kvarts::test {

/// Seed of random tests: the environment's KVARTS_TEST_SEED, else a fixed one. Tests CAPTURE it.
inline std::uint64_t test_seed() {
  char const* const text = std::getenv("KVARTS_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 20251;
}

/// A counter through the finalizer of splitmix64.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  /// An integer of `low..high`.
  int between(int low, int high) {
    auto const count = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<int>(bits() % count);
  }

  /// 0 <= x < 1.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  /// N(0, 1), after Box and Muller.
  double normal() {
    double const radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace kvarts::test
