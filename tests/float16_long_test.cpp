// SPDX-License-Identifier: Apache-2.0
// All 2^32 floats to half and bfloat16. The reference walks along the sorted values of the 16-bit
// type and picks the nearer neighbour, by differences in double; it knows nothing of bit tricks.
#include "support/catch.hpp"
#include "support/f16c.hpp"
#include "support/float16_oracle.hpp"
#include "support/parallel.hpp"

#include <kvarts/float16.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using kvarts::bfloat16;
using kvarts::half;
using kvarts::test::format;

/// Values of the patterns 0, 1, ... up to that of infinity.
template <class T>
std::vector<double> sorted_magnitudes() {
  std::vector<double> values;
  for (int bits = 0; bits <= format<T>::infinity; ++bits) {
    values.push_back(kvarts::test::magnitude_of<T>(static_cast<std::uint16_t>(bits)));
  }
  return values;
}

/// Patterns for floats of growing magnitude.
template <class T>
class nearest_neighbour {
 public:
  nearest_neighbour(std::vector<double> const& values, double first) : values_(values) {
    auto const above = std::upper_bound(values.begin(), values.end(), first);
    lower_ = static_cast<std::size_t>(above - values.begin()) - 1;
  }

  std::uint32_t pattern_of(double magnitude) {
    while (lower_ < format<T>::infinity && values_[lower_ + 1] <= magnitude) ++lower_;
    if (lower_ >= format<T>::infinity) return format<T>::infinity;
    double const below = magnitude - values_[lower_];
    double const above = values_[lower_ + 1] - magnitude;
    bool const up = above < below || (above == below && lower_ % 2 != 0);
    return static_cast<std::uint32_t>(lower_ + (up ? 1 : 0));
  }

 private:
  std::vector<double> const& values_;
  std::size_t lower_;
};

constexpr std::uint32_t piece = 1u << 22;  // magnitudes in one piece of work
constexpr std::int64_t pieces = (std::int64_t{1} << 31) / piece;
constexpr std::uint32_t infinity_bits = 0x7F800000u;

/// Floats of either sign with magnitude bits `first`..`first + piece - 1` whose conversion is
/// wrong.
template <class T>
std::int64_t wrong_in_piece(std::vector<double> const& values, std::uint32_t first) {
  std::int64_t wrong = 0;
  nearest_neighbour<T> nearest(values, std::bit_cast<float>(first));
  for (std::uint32_t bits = first; bits - first < piece; ++bits) {
    bool const nan = bits > infinity_bits;
    std::uint32_t const expected =
        nan ? kvarts::test::quiet_pattern<T>(bits) : nearest.pattern_of(std::bit_cast<float>(bits));
    wrong += T(std::bit_cast<float>(bits)).bits != expected;
    wrong += T(std::bit_cast<float>(bits | 0x80000000u)).bits != (expected | 0x8000u);
  }
  return wrong;
}

TEMPLATE_TEST_CASE("all 2^32 floats round to the nearest 16-bit value", "", half, bfloat16) {
  auto const values = sorted_magnitudes<TestType>();
  std::atomic<std::int64_t> wrong{0};
  kvarts::test::for_each_parallel(pieces, [&](std::int64_t i) {
    wrong += wrong_in_piece<TestType>(values, static_cast<std::uint32_t>(i) * piece);
  });
  CHECK(wrong == 0);
}

TEST_CASE("all 2^32 floats become the half that F16C makes of them") {
  if (!kvarts::test::has_f16c()) {
    WARN("this processor has no F16C: nothing compared");
    return;
  }
  std::atomic<std::int64_t> wrong{0};
  kvarts::test::for_each_parallel(2 * pieces, [&](std::int64_t i) {
    std::int64_t wrong_here = 0;
    std::uint32_t const first = static_cast<std::uint32_t>(i) * piece;
    for (std::uint32_t bits = first; bits - first < piece; ++bits) {
      auto const value = std::bit_cast<float>(bits);
      wrong_here += half(value).bits != kvarts::test::f16c_to_half(value);
    }
    wrong += wrong_here;
  });
  CHECK(wrong == 0);
}

}  // namespace
