// SPDX-License-Identifier: Apache-2.0
/// @file
/// The random numbers of Python's `random` module, number for number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace kvarts::tool {

/// `random.seed(seed)` and what follows it: the Mersenne Twister of the standard library, seeded
/// and read as CPython does it.
class python_random {
 public:
  explicit python_random(std::uint32_t seed);

  /// `random.random()`: 53 bits, 0 <= x < 1.
  double uniform();

  /// `random._randbelow(n)`, for 1 <= n < 2^32.
  std::uint32_t below(std::uint32_t n);

  /// `random.shuffle(values)`.
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i-- > 1;) {
      std::swap(values[i], values[below(static_cast<std::uint32_t>(i + 1))]);
    }
  }

 private:
  std::mt19937 twister_;
};

}  // namespace kvarts::tool
