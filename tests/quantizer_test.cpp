// SPDX-License-Identifier: Apache-2.0
// Every quantizer against a second implementation written from its definition: the same bits, for
// all group lengths up to 130 and awkward numbers.
#include "support/any_quantizer.hpp"
#include "support/catch.hpp"
#include "support/group_data.hpp"
#include "support/quantizer_oracle.hpp"

#include <kvarts/numerics.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ios>
#include <sstream>
#include <string>

namespace {

using namespace kvarts;
using namespace kvarts::test;

quantized as_stored(oracle_group const& g) {
  quantized q{g.codes, half(g.scale).bits, half(g.zero).bits, g.scale, {}};
  for (std::size_t i = 0; i < g.levels.size(); ++i) q.back.push_back(g.back(i));
  return q;
}

/// What a quantizer must store.
quantized expected_of(any_quantizer const& of, numbers const& x) {
  range const levels =
      of.is("narrow") ? range::narrow : (of.is("wide") ? range::wide : range::searched);
  if (of.is("symmetric")) return as_stored(symmetric_oracle(x, of.bits, levels));
  if (of.is("affine")) return as_stored(affine_oracle(x, of.bits));
  if (of.is("midrise")) return as_stored(midrise_oracle(x, of.bits));
  if (of.is("hybrid")) {
    auto const g = hybrid_oracle(x, of.bits, levels);
    quantized q = as_stored(g.part);
    if (g.is_affine) q.scale |= 0x8000;
    return q;
  }
  auto const g = int8_oracle(x);
  quantized q = as_stored(g);
  q.scale = bfloat16(g.scale).bits;
  return q;
}

bool stores_what_is_expected(any_quantizer const& of, numbers const& x) {
  quantized const q = of.quantize(x);
  quantized const expected = expected_of(of, x);
  return q.codes == expected.codes && q.scale == expected.scale && q.zero == expected.zero &&
         std::memcmp(q.back.data(), expected.back.data(), x.size() * sizeof(float)) == 0;
}

/// One line that lets a failure be run again.
std::string text_of(numbers const& x) {
  std::ostringstream text;
  text << std::hexfloat;
  for (float const v : x) text << v << ' ';
  return text.str();
}

void compare(any_quantizer const& of, group_data kind, random_source& random) {
  int wrong = 0;
  std::string first_wrong;
  for (int n = 1; n <= 130; ++n) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      auto const x = draw_group(random, kind, n);
      if (stores_what_is_expected(of, x)) continue;
      if (wrong++ == 0) first_wrong = text_of(x);
    }
  }
  CAPTURE(of.name, static_cast<int>(kind), first_wrong);
  CHECK(wrong == 0);
}

TEST_CASE("quantizers store what their definitions say, bit for bit") {
  REQUIRE(numerics_ok());
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (any_quantizer const& of : all_quantizers()) {
    for (group_data const kind : row_data) compare(of, kind, random);
    if (!of.clamps_rows) compare(of, group_data::huge, random);
  }
  CHECK(all_quantizers().size() == 28);
}

TEST_CASE("long groups are quantized as defined") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (any_quantizer const& of : all_quantizers()) {
    for (int const n : {255, 256, 257, 513, 1023, max_head_dim}) {
      CAPTURE(of.name, n);
      CHECK(stores_what_is_expected(of, draw_group(random, group_data::outlier, n)));
    }
  }
}

}  // namespace
