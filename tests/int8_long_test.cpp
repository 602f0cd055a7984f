// SPDX-License-Identifier: Apache-2.0
// INT8 per head over every pair of non-negative finite bf16 (x, amax) with x <= amax: the error
// bound of the format on bf16 output, and that the clamp never binds.
#include "support/catch.hpp"
#include "support/parallel.hpp"

#include <kvarts/quantizer/int8_head.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace {

using kvarts::bfloat16;
using kvarts::int8_head;

constexpr int finite_values = 0x7F80;  // patterns 0..0x7F7F
constexpr int piece = 1023;            // x beside one amax in a row

/// What was seen of some pairs.
struct findings {
  std::int64_t pairs = 0;
  std::int64_t over_bound = 0;        // |x^ - x| > (0.5 + 2^-8) s + 2^-8 |x^|
  std::int64_t over_tight_bound = 0;  // |x^ - x| > 0.5 s (1 + 2^-15) + 2^-8 |x^|
  std::int64_t other_scales = 0;      // scales that depend on more than amax
  double largest_error = 0.0;         // in units of s
  double largest_quotient = 0.0;

  void add(findings const& other) {
    pairs += other.pairs;
    over_bound += other.over_bound;
    over_tight_bound += other.over_tight_bound;
    other_scales += other.other_scales;
    largest_error = std::max(largest_error, other.largest_error);
    largest_quotient = std::max(largest_quotient, other.largest_quotient);
  }
};

std::vector<float> all_values() {
  std::vector<float> values;
  for (int bits = 0; bits < finite_values; ++bits) {
    values.push_back(bfloat16::from_bits(static_cast<std::uint16_t>(bits)));
  }
  return values;
}

/// Decoded to bf16, for every code.
std::array<double, 256> decode_all_codes(int8_head::parameters_type const& p) {
  std::array<double, 256> values{};
  kvarts::decoding const with = int8_head::decode_with(p);
  for (int u = 0; u < 256; ++u) {
    float const x = with.scale * int8_head::level(static_cast<std::uint8_t>(u), p, 1) + with.zero;
    values[static_cast<std::size_t>(u)] = static_cast<float>(kvarts::saturate<bfloat16>(x));
  }
  return values;
}

/// The pairs of values[begin..end) and one scale.
void check_codes(float const* x, std::uint8_t const* codes, int count, double scale,
                 std::array<double, 256> const& decoded, findings& found) {
  double const slack = (0.5 + 0x1p-8) * scale;
  double const tight_slack = 0.5 * scale * (1.0 + 0x1p-15);
  for (int i = 0; i < count; ++i) {
    double const back = decoded[codes[i]];
    double const error = std::fabs(back - x[i]);
    double const rounding = 0x1p-8 * std::fabs(back);
    found.over_bound += error > slack + rounding;
    found.over_tight_bound += error > tight_slack + rounding;
    found.largest_error = std::max(found.largest_error, error / scale);
  }
  found.pairs += count;
}

/// All pairs with amax = values[at]: rows of `piece` smaller values, amax last.
findings check_amax(std::vector<float> const& values, int at) {
  findings found;
  float const amax = values[static_cast<std::size_t>(at)];
  std::array<float, piece + 1> row{};
  std::array<std::uint8_t, piece + 1> codes{};
  row[0] = amax;
  auto const p = int8_head::quantize(row.data(), 1, codes.data());
  auto const decoded = decode_all_codes(p);
  double const scale = static_cast<float>(p.scale);
  found.largest_quotient = amax / scale;
  for (int begin = 0; begin <= at; begin += piece) {
    int const count = std::min(piece, at + 1 - begin);
    std::copy_n(values.begin() + begin, count, row.begin());
    row[static_cast<std::size_t>(count)] = amax;
    auto const same = int8_head::quantize(row.data(), count + 1, codes.data());
    found.other_scales += same.scale.bits != p.scale.bits;
    check_codes(row.data(), codes.data(), count, scale, decoded, found);
  }
  return found;
}

TEST_CASE("INT8 keeps its bound for all pairs of bf16 (x, amax)") {
  auto const values = all_values();
  findings all;
  std::mutex adding;
  kvarts::test::for_each_parallel(finite_values, [&](std::int64_t i) {
    // The largest amax, with the most pairs, first: no core is left with a long rest.
    auto const found = check_amax(values, finite_values - 1 - static_cast<int>(i));
    std::lock_guard const lock(adding);
    all.add(found);
  });
  CHECK(all.pairs == 532'701'120);
  CHECK(all.over_bound == 0);
  CHECK(all.over_tight_bound == 0);
  CHECK(all.other_scales == 0);
  CHECK(all.largest_error == Catch::Approx(0.9343).margin(0.00005));
  CHECK(all.largest_quotient == Catch::Approx(127.33).margin(0.005));
  CHECK(all.largest_quotient < 127.5);
}

}  // namespace
