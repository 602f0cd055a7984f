// SPDX-License-Identifier: Apache-2.0
// What one thread computes, against the definitions in double precision.
#include "support/catch.hpp"
#include "support/float16_oracle.hpp"
#include "support/random.hpp"

#include <kvarts/kernels/primitives.cuh>

#include <cmath>
#include <cstdint>
#include <limits>

namespace {

using namespace kvarts::kernels;
using kvarts::half;

double half_value(std::uint16_t bits) {
  double const magnitude = kvarts::test::magnitude_of<half>(bits);
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

TEST_CASE("halfs of a register are the floats that they stand for") {
  for (std::uint32_t bits = 0; bits <= 0xFFFFu; ++bits) {
    if ((bits & 0x7FFFu) >= 0x7C00u) continue;  // infinities and NaNs
    auto const value = static_cast<float>(half_value(static_cast<std::uint16_t>(bits)));
    float_pair const both = unpack_half2(bits | (bits ^ 0x8000u) << 16);
    REQUIRE(both.low == value);
    REQUIRE(both.high == -value);
    REQUIRE(half_to_float(static_cast<std::uint16_t>(bits)) == value);
    REQUIRE(pack_half2(value, -value) == (bits | (bits ^ 0x8000u) << 16));
  }
  CHECK(pack_half2(2049.0f, 2051.0f) == (0x6800u | 0x6802u << 16));  // ties go to even
  CHECK(pack_half2(65520.0f, 0x1p-26f) == 0x7C00u);
}

TEST_CASE("products of halfs are rounded to the nearest") {
  kvarts::test::random_source random(kvarts::test::test_seed());
  CAPTURE(kvarts::test::test_seed());
  for (int i = 0; i < 20000; ++i) {
    auto const a = static_cast<std::uint16_t>(random.bits() & 0x7BFFu);
    auto const b = static_cast<std::uint16_t>(random.bits() & 0x7BFFu);
    double const exact = half_value(a) * half_value(b);
    auto const product = static_cast<std::uint16_t>(mul_half2(a, b) & 0xFFFFu);
    if (exact >= 65520.0) {
      REQUIRE(product == 0x7C00u);
      continue;
    }
    double const error = std::fabs(half_value(product) - exact);
    REQUIRE(error <= std::fabs(half_value(static_cast<std::uint16_t>(product + 1)) - exact));
    if (product > 0) {
      REQUIRE(error <= std::fabs(half_value(static_cast<std::uint16_t>(product - 1)) - exact));
    }
  }
}

TEST_CASE("single instructions compute what the manual says") {
  CHECK(byte_permute(0x33221100u, 0x77665544u, 0x7531u) == 0x77553311u);
  CHECK(byte_permute(0x33221100u, 0x77665544u, 0x0246u) == 0x00224466u);
  CHECK(fused(1.0f + 0x1p-12f, 1.0f + 0x1p-12f, -1.0f - 0x1p-11f) == 0x1p-24f);
  for (float x = -125.9f; x < 127.5f; x += 0.37f) {
    double const exact = std::exp2(static_cast<double>(x));
    REQUIRE(std::fabs(exp2_approx(x) - exact) <= exact * 0x1p-22);
    auto const power = static_cast<float>(exact);
    double const error = std::fabs(log2_approx(power) - std::log2(static_cast<double>(power)));
    REQUIRE(error <= 0x1p-22 * std::fmax(1.0, std::fabs(static_cast<double>(x))));
  }
  CHECK(exp2_approx(-127.0f) == 0.0f);
  CHECK(exp2_approx(-std::numeric_limits<float>::infinity()) == 0.0f);
  CHECK(log2_approx(0x1p-130f) == -std::numeric_limits<float>::infinity());
}

}  // namespace
