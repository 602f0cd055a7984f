// SPDX-License-Identifier: Apache-2.0
#include "tier/python_random.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace kvarts::tool {

namespace {

/// A seed sequence whose numbers are the twister's whole state, as `init_by_array` of the twister's
/// authors makes it of one number.
class init_by_array {
 public:
  using result_type = std::uint32_t;

  explicit init_by_array(std::uint32_t key) {
    state_[0] = 19650218;
    for (std::size_t i = 1; i < size; ++i) {
      state_[i] = 1812433253u * mixed(i - 1) + static_cast<std::uint32_t>(i);
    }
    std::size_t at = 1;
    for (std::size_t i = 0; i < size; ++i) {
      state_[at] = (state_[at] ^ (mixed(at - 1) * 1664525u)) + key;
      at = next(at);
    }
    for (std::size_t i = 0; i < size - 1; ++i) {
      state_[at] = (state_[at] ^ (mixed(at - 1) * 1566083941u)) - static_cast<std::uint32_t>(at);
      at = next(at);
    }
    state_[0] = 0x80000000u;
  }

  template <class To>
  void generate(To first, To last) const {
    std::copy_n(state_.begin(), last - first, first);
  }

 private:
  static constexpr std::size_t size = std::mt19937::state_size;

  std::uint32_t mixed(std::size_t i) const { return state_[i] ^ (state_[i] >> 30); }

  /// Goes round without ever coming to 0, which takes the last number instead.
  std::size_t next(std::size_t at) {
    if (at + 1 < size) return at + 1;
    state_[0] = state_[size - 1];
    return 1;
  }

  std::array<std::uint32_t, size> state_{};
};

std::mt19937 twister_of(std::uint32_t seed) {
  init_by_array numbers(seed);
  return std::mt19937(numbers);
}

}  // namespace

python_random::python_random(std::uint32_t seed) : twister_(twister_of(seed)) {}

double python_random::uniform() {
  auto const high = static_cast<double>(twister_() >> 5);  // 27 bits
  auto const low = static_cast<double>(twister_() >> 6);   // 26 bits
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

std::uint32_t python_random::below(std::uint32_t n) {
  int const shift = std::countl_zero(n);
  for (;;) {
    auto const value = static_cast<std::uint32_t>(twister_()) >> shift;
    if (value < n) return value;
  }
}

}  // namespace kvarts::tool
