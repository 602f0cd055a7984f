// SPDX-License-Identifier: Apache-2.0
// Groups and rows at the edges of the number range: nothing becomes NaN or infinite, zeros are
// exact, constants come back, and what is not finite touches its own group only.
#include "support/any_codec.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr int head_dim = 46;
constexpr std::int64_t tokens = 40;

bool named(any_codec const& c, std::string_view part) {
  return c.name().find(part) != std::string::npos;
}

/// Encodes `x` as fp32 and decodes it.
rows round_trip(any_codec const& c, rows const& x, int group, dtype type = dtype::f32,
                transform_view const& t = {}) {
  layout const m = c.head_tiles(x.heads, x.head_dim, x.tokens,
                                {.tile_tokens = c.along_tokens() ? 2 * group : 8, .group = group});
  auto const bytes = encoded(c, m, contiguous_memory(x, type).source(), t);
  return decoded(c, m, bytes.data(), x.tokens, t);
}

bool all_finite(rows const& y) {
  return std::all_of(y.values.begin(), y.values.end(), [](float v) { return std::isfinite(v); });
}

/// Largest |y - x|.
double largest_error(rows const& x, rows const& y) {
  double largest = 0.0;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(x.values[i]) - y.values[i]));
  }
  return largest;
}

/// Half a unit in the last place of fp16 at x: what rounding to it can do.
double half_rounding(double x) { return std::max(std::fabs(x) * 0x1p-11, 0x1p-25); }

/// Rule 4: how far a constant may come back from itself.
double constant_bound(any_codec const& c, double x) {
  int const bits = c.info.bits;
  double const magnitude = std::fabs(x);
  if (named(c, "bf16") || named(c, "int8_head")) return std::max(magnitude * 0x1p-8, 0x1p-119);
  if (named(c, "f16") && c.info.plain) return half_rounding(x);
  if (named(c, "affine") || named(c, "hybrid")) return half_rounding(x);
  double const levels = named(c, "narrow") ? (1 << (bits - 1)) - 1 : 1 << (bits - 1);
  double const rounding = levels * half_rounding(magnitude / levels) * (1.0 + 0x1p-10);
  if (named(c, "narrow") || named(c, "searched")) return rounding;
  if (named(c, "wide")) return magnitude / levels + rounding;
  if (named(c, "midrise"))
    return magnitude / 2.0 + 0x1p-24;  // two bits: levels +-.5 and +-1.5 steps
  return magnitude;                    // codebooks
}

TEST_CASE("constant groups and rows") {
  for (float const value : {0.0f, -0.0f, 100.0f, -100.0f, 1.0f, -65504.0f, 65504.0f, 1e-40f, 6e-8f,
                            -3e-5f, 0.333f, -7777.0f}) {
    rows const x(1, head_dim, tokens, value);
    for (auto const& c : all_codecs()) {
      for (int const group : {1, 16, 32, 128}) {
        CAPTURE(value, c.name(), group);
        rows const y = round_trip(c, x, group);
        REQUIRE(all_finite(y));
        REQUIRE(largest_error(x, y) <= constant_bound(c, value));
      }
    }
  }
}

TEST_CASE("zeros are exact, and +0 in coded formats") {
  random_source random(test_seed());
  for (bool const negative : {false, true}) {
    rows x(1, head_dim, tokens, negative ? -0.0f : 0.0f);
    for (auto const& c : all_codecs()) {
      CAPTURE(c.name(), negative);
      for (float const y : round_trip(c, x, 16).values) {
        REQUIRE(y == 0.0f);
        if (!c.info.plain) REQUIRE_FALSE(std::signbit(y));
      }
    }
    // Signs of zero mixed.
    for (float& v : x.values) v = random.between(0, 1) == 1 ? 0.0f : -0.0f;
    for (auto const& c : all_codecs()) {
      CAPTURE(c.name());
      for (float const y : round_trip(c, x, 16).values) REQUIRE(y == 0.0f);
    }
  }
}

TEST_CASE("one number too small for the scale among zeros") {
  for (float const tiny : {1e-38f, -1e-38f, 1e-45f, 2.9e-8f}) {
    for (int const place : {0, 15, head_dim - 1}) {
      rows x(1, head_dim, tokens);
      for (std::int64_t t = 0; t < tokens; ++t) x.at(t, 0, place) = tiny;
      for (auto const& c : all_codecs()) {
        CAPTURE(tiny, place, c.name());
        rows const y = round_trip(c, x, 16);
        REQUIRE(all_finite(y));
        REQUIRE(largest_error(x, y) <= 0x1p-24);  // fp16's smallest step
      }
    }
  }
}

TEST_CASE("a spread of one unit in the last place") {
  struct grain {
    dtype type;
    float above_600;
  };
  for (grain const g : {grain{dtype::f16, 600.5f},
                        {dtype::bf16, 604.0f},
                        {dtype::f32, std::nextafterf(600.0f, 1e9f)}}) {
    rows x(1, head_dim, tokens);
    for (std::size_t i = 0; i < x.values.size(); ++i)
      x.values[i] = i * i % 3 == 0 ? 600.0f : g.above_600;
    for (auto const& c : all_codecs()) {
      CAPTURE(c.name(), to_string(g.type));
      rows const y = round_trip(c, x, 16, g.type);
      REQUIRE(all_finite(y));
      REQUIRE(largest_error(x, y) <= constant_bound(c, 604.5) + (g.above_600 - 600.0));
    }
  }
}

TEST_CASE("a zero-filled tail does not enter the range of a group") {
  // Last groups that are partial; filling them with zeros would give an error of .198.
  rows x(1, 96, 96);
  for (std::int64_t t = 0; t < 96; ++t) {
    for (int d = 0; d < 96; ++d) x.at(t, 0, d) = 5.0f + 0.01f * static_cast<float>(d);
  }
  rows by_token = x;
  for (std::int64_t t = 0; t < 96; ++t) {
    for (int d = 0; d < 96; ++d) by_token.at(t, 0, d) = 5.0f + 0.01f * static_cast<float>(t);
  }
  for (auto const& c : all_codecs()) {
    if (std::string_view(c.info.name) != "affine4") continue;
    for (int const group : {128, 96, 64, 80}) {
      CAPTURE(c.name(), group);
      rows const& input = c.along_tokens() ? by_token : x;
      CHECK(largest_error(input, round_trip(c, input, group)) <= 0.0317 + 0x1p-9);
    }
  }
}

TEST_CASE("a bfloat16 group beyond fp16's range") {
  rows x(1, head_dim, tokens, 1.0f);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int d = 0; d < head_dim; ++d) {
      if (d % 16 == 3 && t % 16 == 5) x.at(t, 0, d) = -70144.0f;  // a bfloat16
      if (d % 16 == 4) x.at(t, 0, d) = -100.0f;
    }
  }
  for (auto const& c : all_codecs()) {
    CAPTURE(c.name());
    rows const y = round_trip(c, x, 16, dtype::bf16);
    REQUIRE(all_finite(y));
    // The step, or what is cut off where a parameter saturates at 65504.
    double const levels = named(c, "affine") || named(c, "hybrid2_narrow") ? 1.0
                          : named(c, "narrow") ? (1 << (c.info.bits - 1)) - 1
                                               : 1 << (c.info.bits - 1);
    double const step = 70144.0 / levels;
    bool const any_row = c.info.grouped_along == axis::row && !c.info.plain;
    REQUIRE(largest_error(x, y) <= std::max({step, 70144.0 - 65504.0, any_row ? 70144.0 : 0.0}));
  }
}

TEST_CASE("60000 for 4096 tokens averages to 60000") {
  rows const x(1, 4, 4096, 60000.0f);
  std::vector<float> const p(4096, 1.0f / 4096.0f);
  for (auto const& c : all_codecs()) {
    bool const exact = named(c, "narrow") || named(c, "searched") || named(c, "affine") ||
                       named(c, "int8") || c.info.plain;
    if (!exact) continue;  // wide, mid-rise: within a step, in "constant groups and rows"
    CAPTURE(c.name());
    layout const m = c.head_tiles(1, 4, 4096, {.group = 32});
    auto const bytes = encoded(c, m, x.source());
    float mean[4] = {};
    REQUIRE(c.gemv_pv({bytes.data(), m, {}}, {0, 4096}, 1, p.data(), mean) == status::ok);
    // bfloat16 has 8 significant bits.
    float const bound = named(c, "bf16") ? 0x1p-9f : 0.001f;
    for (float const v : mean) CHECK(std::fabs(v / 60000.0f - 1.0f) <= bound);
  }
}

/// Where two results may differ when element (t, d) differs.
bool shares_group(any_codec const& c, int group, std::int64_t t, int d, std::int64_t t2, int d2) {
  if (c.info.plain) return t == t2 && d == d2;
  if (c.along_tokens()) return t / group == t2 / group && d == d2;
  if (c.info.grouped_along == axis::row) return t == t2;
  return t == t2 && d / group == d2 / group;
}

TEST_CASE("what is not finite touches its own group, and is counted") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  float const nan = std::numeric_limits<float>::quiet_NaN();
  int turn = 0;
  for (auto const& c : all_codecs()) {
    for (std::uint32_t const bad : {0x7FC00000u, 0xFFC00000u, 0x7F800000u, 0xFF800000u}) {
      dtype const type = static_cast<dtype>(turn++ % 3);
      CAPTURE(c.name(), bad, to_string(type));
      rows const x = normal_rows(random, 1, head_dim, tokens);
      auto memory = contiguous_memory(x, type);
      layout const m = c.head_tiles(1, head_dim, tokens, {.tile_tokens = 8, .group = 8});
      auto const clean = encoded(c, m, memory.source());
      std::int64_t const t = random.between(0, tokens - 1);
      int const d = random.between(0, head_dim - 1);
      std::byte* const at = memory.bytes.data() + (t * head_dim + d) * element_size(type);
      if (type == dtype::f32) store_unaligned(at, bad);
      if (type == dtype::f16) store_unaligned(at, half(std::bit_cast<float>(bad)));
      if (type == dtype::bf16) store_unaligned(at, bfloat16(std::bit_cast<float>(bad)));

      std::vector<std::byte> bytes(clean.size());
      auto const result = c.encode({bytes.data(), m, {}}, memory.source(), {0, tokens}, {});
      REQUIRE(result.code == status::ok);
      REQUIRE(result.nonfinite == 1);
      rows const before = decoded(c, m, clean.data(), tokens);
      rows const after = decoded(c, m, bytes.data(), tokens);
      REQUIRE(all_finite(after));
      int strays = 0;
      for (std::int64_t t2 = 0; t2 < tokens; ++t2) {
        for (int d2 = 0; d2 < head_dim; ++d2) {
          if (shares_group(c, 8, t, d, t2, d2)) continue;
          strays += before.at(t2, 0, d2) == after.at(t2, 0, d2) ? 0 : 1;
        }
      }
      REQUIRE(strays == 0);
    }
  }
  // All of them, also where a group is read strip by strip.
  rows const all(2, 96, 300, nan);
  for (auto const& c : all_codecs()) {
    CAPTURE(c.name());
    layout const m = c.head_tiles(2, 96, 300, {.tile_tokens = 1024, .group = 1024});
    std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()));
    auto const result = c.encode({bytes.data(), m, {}}, all.source(), {0, 300}, {});
    REQUIRE(result.nonfinite == 2 * 96 * 300);
    rows const y = decoded(c, m, bytes.data(), 300);
    REQUIRE(std::all_of(y.values.begin(), y.values.end(), [](float v) { return v == 0.0f; }));
  }
}

TEST_CASE("the largest numbers of every type stay finite through every transform") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  float const most = std::numeric_limits<float>::max();
  transform t{1, head_dim, {}, {}, {1, 1}};
  for (int d = 0; d < head_dim; ++d) {
    t.center.push_back(d % 2 == 0 ? -most : 1.0f);
    t.norm.push_back(d % 3 == 0 ? 1e-40f : 1e10f);
  }
  rows x(1, head_dim, tokens);
  for (float& v : x.values) v = random.between(0, 1) == 1 ? most : -most;
  transform unrotated = t;
  unrotated.rotate = {};
  for (auto const& c : all_codecs()) {
    for (dtype const type : {dtype::f16, dtype::bf16, dtype::f32}) {
      CAPTURE(c.name(), to_string(type));
      REQUIRE(all_finite(round_trip(c, x, 16, type)));
      REQUIRE(all_finite(round_trip(c, x, 16, type, t.view())));
      REQUIRE(all_finite(round_trip(c, x, 16, type, unrotated.view())));
    }
  }
}

}  // namespace
