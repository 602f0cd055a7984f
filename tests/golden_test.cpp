// SPDX-License-Identifier: Apache-2.0
// The golden vectors of codecs without transforms, bit for bit.
#include "support/catch.hpp"
#include "support/coded_ways.hpp"
#include "support/golden_checks.hpp"

#include <kvarts/codec_list.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

/// The codes, parameters and decoded numbers that a case expects.
template <class Codec>
coded_by<Codec> expected_of(golden_reader& golden, golden_case const& c) {
  coded_by<Codec> expected;
  expected.codes = golden.numbers<std::uint8_t>(c.name + ".codes_u8");
  expected.scales = golden.numbers<half>(c.name + ".scale_f16");
  if (Codec::zero_bytes != 0) expected.zeros = golden.numbers<half>(c.name + ".zero_f16");
  expected.decoded = golden.numbers<float>(c.name + ".decoded_f32");
  return expected;
}

template <class Scale>
void check_equal(coded_numbers<Scale> const& actual, coded_numbers<Scale> const& expected) {
  CHECK(first_difference(actual.codes, expected.codes) == no_difference);
  CHECK(first_difference(actual.scales, expected.scales) == no_difference);
  CHECK(first_difference(actual.zeros, expected.zeros) == no_difference);
  CHECK(first_difference(actual.decoded, expected.decoded) == no_difference);
  CHECK(actual.nonfinite == expected.nonfinite);
}

template <class Codec>
void check_choice(golden_reader& golden, golden_case const& c, std::vector<half> const& scales) {
  if constexpr (requires { Codec::quantizer_type::is_affine; }) {
    std::vector<std::uint8_t> chosen;
    for (half const s : scales) chosen.push_back((s.bits & 0x8000) != 0 ? 1 : 0);
    CHECK(first_difference(chosen, golden.numbers<std::uint8_t>(c.name + ".is_affine")) ==
          no_difference);
  }
}

/// Groups and mid-rise rows: the quantizer alone, row records and head tiles.
template <class Codec>
void check_coded(golden_reader& golden, golden_case const& c) {
  bool const grouped = Codec::grouped_along != axis::row;
  int const group = grouped ? std::stoi(c.group) : 0;
  auto const input = golden.input(c.input);
  source_view const source = input.source();
  finite_rows rows = make_finite_rows(source);
  if (!grouped) {
    for (float& x : rows.values) x = std::clamp(x, -65504.0f, 65504.0f);
  }
  auto expected = expected_of<Codec>(golden, c);
  check_equal(quantize_groups<Codec>(rows.values, source.map.head_dim, group), expected);
  check_choice<Codec>(golden, c, expected.scales);

  expected.nonfinite = rows.nonfinite;
  for (auto const& way : encode_ways<Codec>(source, group)) check_equal(way, expected);
}

std::vector<bfloat16> decode_to_bf16(view<row_codec<int8_head>> v, std::int64_t tokens) {
  auto const size = tokens * v.map.heads * v.map.head_dim;
  std::vector<bfloat16> rows(static_cast<std::size_t>(size));
  REQUIRE(decode(v, make_tensor(rows.data(), v.map.heads, v.map.head_dim, tokens), {0, tokens}) ==
          status::ok);
  return rows;
}

void check_int8(golden_reader& golden, golden_case const& c) {
  using codec = row_codec<int8_head>;
  auto const input = golden.input(c.input);
  source_view const source = input.source();
  layout const& m = source.map;
  auto const record_bytes = golden.numbers<std::uint8_t>(c.name + ".record");
  auto const decoded = golden.numbers<bfloat16>(c.name + ".decoded_bf16");
  auto const nonfinite = make_finite_rows(source).nonfinite;

  poisoned<codec> records(
      make_row_records<codec>(m.heads, m.head_dim, m.tokens, std::stoi(c.group)));
  CHECK(encode_all(records, source, {}).nonfinite == nonfinite);
  std::vector<std::uint8_t> bytes;
  for (std::byte const b : records.bytes) bytes.push_back(std::to_integer<std::uint8_t>(b));
  CHECK(first_difference(bytes, record_bytes) == no_difference);
  CHECK(first_difference(decode_to_bf16(records.view, m.tokens), decoded) == no_difference);

  poisoned<codec> tiles(make_head_tiles<codec>(m.heads, m.head_dim, m.tokens));
  CHECK(encode_all(tiles, source, {}).nonfinite == nonfinite);
  CHECK(first_difference(decode_to_bf16(tiles.view, m.tokens), decoded) == no_difference);
  auto const from_tiles = read_back(tiles.view, m.tokens);
  check_equal(from_tiles, read_back(records.view, m.tokens));

  // Rows [tokens, heads, head_dim] are one head's rows to the quantizer.
  auto const directly = quantize_groups<codec>(make_finite_rows(source).values, m.head_dim, 0);
  check_equal(directly, from_tiles);
}

void run(golden_reader& golden, golden_case const& c) {
  if (kind_of(c) == golden_kind::int8_rows) return check_int8(golden, c);
  bool const found = visit_codec(codec_name_of(c), axis_of(c), [&](auto tag) {
    using codec = typename decltype(tag)::type;
    if constexpr (has_half_scales<codec>) check_coded<codec>(golden, c);
  });
  CHECK(found);
}

TEST_CASE("every golden case of a codec without a transform holds bit for bit") {
  golden_reader golden;
  auto const cases = golden_cases();
  std::map<golden_kind, int> ran;
  for (golden_case const& c : cases) {
    INFO("case " << c.name);
    auto const kind = kind_of(c);
    ++ran[kind];
    bool const ours =
        kind == golden_kind::int8_rows || kind == golden_kind::groups || kind == golden_kind::rows;
    if (!ours) continue;
    run(golden, c);
    CHECK(golden.unread(c) == std::vector<std::string>{});
  }
  CHECK(ran[golden_kind::int8_rows] == 5);
  CHECK(ran[golden_kind::groups] == 90);
  CHECK(ran[golden_kind::rows] == 18);
  CHECK(cases.size() == 173);
}

}  // namespace
