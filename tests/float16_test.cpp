// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/f16c.hpp"
#include "support/float16_oracle.hpp"

#include <kvarts/float16.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace {

using kvarts::bfloat16;
using kvarts::half;
using kvarts::saturate;
using kvarts::test::format;
using kvarts::test::magnitude_of;
using kvarts::test::quiet_pattern;

constexpr float infinity = std::numeric_limits<float>::infinity();

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

bool same(float a, float b) { return bits_of(a) == bits_of(b); }

float negated_if(bool negative, float x) { return negative ? -x : x; }

// Conversions happen at compile time too, with the same results.
static_assert(half(1.0f).bits == 0x3C00 && half(-2.0f).bits == 0xC000);
static_assert(half(65504.0f).bits == 0x7BFF && half(65519.996f).bits == 0x7BFF);
static_assert(half(65520.0f).bits == 0x7C00 && half(-1e30f).bits == 0xFC00);
static_assert(half(0x1p-24f).bits == 0x0001 && half(0x1p-25f).bits == 0x0000);
static_assert(half(0x1.000002p-25f).bits == 0x0001 && half(0x1.8p-24f).bits == 0x0002);
static_assert(half(0x1.FFCp-15f).bits == 0x0400,
              "the largest subnormal's upper half rounds to 2^-14");
static_assert(half(1.0f + 0x1p-11f).bits == 0x3C00, "a tie goes to even");
static_assert(half(1.0f + 0x1.8p-10f).bits == 0x3C02, "a tie goes to even, upward");
static_assert(half(-0.0f).bits == 0x8000 && half(0.0f).bits == 0x0000);
static_assert(static_cast<float>(half::from_bits(0x0001)) == 0x1p-24f);
static_assert(static_cast<float>(half::from_bits(0x83FF)) == -0x1.FF8p-15f);
static_assert(bfloat16(1.0f).bits == 0x3F80 && bfloat16(0x1.01p0f).bits == 0x3F80);
static_assert(bfloat16(0x1.03p0f).bits == 0x3F82 && bfloat16(0x1.0100020p0f).bits == 0x3F81);
static_assert(bfloat16(0x1.FFp127f).bits == 0x7F80, "the tie above the largest value overflows");
static_assert(bfloat16(0x1.FEFFFEp127f).bits == 0x7F7F);
static_assert(bfloat16(0x1p-134f).bits == 0x0000 && bfloat16(0x1.8p-133f).bits == 0x0002);
static_assert(saturate<half>(1e30f).bits == 0x7BFF && saturate<half>(-65520.0f).bits == 0xFBFF);
static_assert(saturate<bfloat16>(infinity).bits == 0x7F7F);
static_assert(saturate<float>(-infinity) == -std::numeric_limits<float>::max());
static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2);

TEMPLATE_TEST_CASE("all 65,536 patterns convert exactly and come back", "", half, bfloat16) {
  int wrong = 0;
  for (std::uint32_t pattern = 0; pattern <= 0xFFFF; ++pattern) {
    auto const bits = static_cast<std::uint16_t>(pattern);
    auto const value = static_cast<float>(TestType::from_bits(bits));
    bool const negative = (bits & 0x8000) != 0;
    auto const magnitude = static_cast<std::uint16_t>(bits & 0x7FFF);
    wrong += std::signbit(value) != negative;
    if (magnitude > format<TestType>::infinity) {
      wrong += !std::isnan(value);
      wrong += TestType(value).bits != (bits | format<TestType>::quiet);
      continue;
    }
    float const expected = magnitude == format<TestType>::infinity
                               ? infinity
                               : static_cast<float>(magnitude_of<TestType>(bits));
    wrong += !same(value, negated_if(negative, expected));
    wrong += TestType(value).bits != bits;
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("floats round to the nearest pattern, ties to even", "", half, bfloat16) {
  int wrong = 0;
  for (int sign : {0, 0x8000}) {
    for (int lower = 0; lower < format<TestType>::infinity; ++lower) {
      auto const pattern = [&](int magnitude) {
        return static_cast<std::uint16_t>(magnitude | sign);
      };
      auto const at = [](int magnitude) {
        return magnitude_of<TestType>(static_cast<std::uint16_t>(magnitude));
      };
      auto const rounds_to = [&](double x, int magnitude) {
        auto const value = negated_if(sign != 0, static_cast<float>(x));
        wrong += TestType(value).bits != pattern(magnitude);
      };
      double const middle = (at(lower) + at(lower + 1)) / 2;
      auto const tie = static_cast<float>(middle);
      rounds_to(at(lower), lower);
      rounds_to(middle, lower + lower % 2);
      rounds_to(std::nextafter(tie, 0.0f), lower);
      rounds_to(std::nextafter(tie, infinity), lower + 1);
      if (lower > 0) rounds_to(std::nextafter(static_cast<float>(at(lower)), 0.0f), lower);
    }
  }
  CHECK(wrong == 0);
  CHECK(TestType(infinity).bits == format<TestType>::infinity);
  CHECK(TestType(-infinity).bits == (format<TestType>::infinity | 0x8000));
}

TEMPLATE_TEST_CASE("NaN stays NaN, quiet, whatever its payload", "", half, bfloat16) {
  for (std::uint32_t const payload :
       {1u, 0x1FFFu, 0x2000u, 0xFFFFu, 0x10000u, 0x3FFFFFu, 0x400000u, 0x7FFFFFu}) {
    for (std::uint32_t const sign : {0u, 0x80000000u}) {
      std::uint32_t const bits = sign | 0x7F800000u | payload;
      CAPTURE(bits);
      auto const nan = std::bit_cast<float>(bits);
      CHECK(TestType(nan).bits == quiet_pattern<TestType>(bits));
      CHECK(std::isnan(static_cast<float>(saturate<TestType>(nan))));
    }
  }
}

TEMPLATE_TEST_CASE("saturate clamps to the largest finite value and changes nothing else", "", half,
                   bfloat16) {
  constexpr auto largest = static_cast<std::uint16_t>(format<TestType>::infinity - 1);
  auto const limit = static_cast<float>(magnitude_of<TestType>(largest));
  CHECK(same(TestType::largest, limit));
  for (float const x :
       {limit, std::nextafter(limit, infinity), std::numeric_limits<float>::max(), infinity}) {
    CAPTURE(x);
    CHECK(saturate<TestType>(x).bits == largest);
    CHECK(saturate<TestType>(-x).bits == (largest | 0x8000));
  }
  int wrong = 0;
  for (int lower = 0; lower < largest; ++lower) {
    double const middle = (magnitude_of<TestType>(static_cast<std::uint16_t>(lower)) +
                           magnitude_of<TestType>(static_cast<std::uint16_t>(lower + 1))) /
                          2;
    auto const tie = static_cast<float>(middle);
    for (float const x : {tie, -tie, std::nextafter(tie, 0.0f), std::nextafter(tie, infinity)}) {
      wrong += saturate<TestType>(x).bits != TestType(x).bits;
    }
  }
  CHECK(wrong == 0);
}

/// Every half, every midpoint between two, and the floats on both sides of each.
template <class F>
void for_each_hard_float(F&& f) {
  for (std::uint32_t half_bits = 0; half_bits < 0x7C00; ++half_bits) {
    auto const lower = magnitude_of<half>(static_cast<std::uint16_t>(half_bits));
    auto const upper = magnitude_of<half>(static_cast<std::uint16_t>(half_bits + 1));
    for (double const x : {lower, (lower + upper) / 2}) {
      auto const bits = bits_of(static_cast<float>(x));
      for (std::uint32_t const near : {bits - (bits != 0), bits, bits + 1}) {
        f(std::bit_cast<float>(near));
        f(std::bit_cast<float>(near | 0x80000000u));
      }
    }
  }
}

TEST_CASE("half equals the processor's F16C") {
  if (!kvarts::test::has_f16c()) {
    WARN("this processor has no F16C: nothing compared");
    return;
  }
  int wrong = 0;
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    auto const h = static_cast<std::uint16_t>(bits);
    wrong += !same(half::from_bits(h), kvarts::test::f16c_to_float(h));
  }
  for_each_hard_float([&](float x) { wrong += half(x).bits != kvarts::test::f16c_to_half(x); });
  CHECK(wrong == 0);
}

#if defined(__FLT16_MAX__)
TEST_CASE("half equals the compiler's _Float16") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    auto const h = static_cast<std::uint16_t>(bits);
    wrong += !same(half::from_bits(h), static_cast<float>(std::bit_cast<_Float16>(h)));
  }
  for_each_hard_float([&](float x) {
    wrong += half(x).bits != std::bit_cast<std::uint16_t>(static_cast<_Float16>(x));
  });
  CHECK(wrong == 0);
}
#endif

}  // namespace
