// SPDX-License-Identifier: Apache-2.0
// What is stored is a function of the numbers alone: not of how they lie in memory, nor of how they
// are fed.
#include "support/any_codec.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

// 92-byte rows of fp16, 3-bit codes that straddle bytes, a last group of 14 channels and one of 13
// tokens, a last tile that is not full.
constexpr int heads = 3, head_dim = 46, group = 16;
constexpr std::int64_t tokens = 77;
constexpr tile_options options{.tile_tokens = 32, .group = group, .alignment = 4};

rows example_rows(std::uint64_t seed) {
  random_source random(seed);
  return normal_rows(random, heads, head_dim, tokens);
}

transform example_transform(bool rotated) {
  transform t{heads, head_dim, {}, {}, {rotated ? 1 : 0, 1}};
  random_source random(7);
  for (int i = 0; i < heads * head_dim; ++i) {
    t.center.push_back(static_cast<float>(random.normal()));
    t.norm.push_back(static_cast<float>(0.5 + random.uniform()));
  }
  return t;
}

TEST_CASE("chunks encode as the whole") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  auto const x = contiguous_memory(example_rows(seed), dtype::f16);
  transform const t = example_transform(true);
  for (auto const& c : all_codecs()) {
    CAPTURE(c.name());
    layout const m = c.head_tiles(heads, head_dim, tokens, options);
    auto const whole = encoded(c, m, x.source(), t.view());
    std::vector<std::int64_t> const steps = c.along_tokens()
                                                ? std::vector<std::int64_t>{group, 3 * group}
                                                : std::vector<std::int64_t>{1, 7, 33};
    for (std::int64_t const step : steps) {
      CAPTURE(step);
      std::vector<std::byte> bytes(whole.size());
      for (std::int64_t begin = 0; begin < tokens; begin += step) {
        std::int64_t const end = std::min(begin + step, tokens);
        source_view part = x.source();
        part.data = part.row(0, begin);
        part.map.tokens = end - begin;
        REQUIRE(c.encode({bytes.data(), m, {}}, part, {begin, end}, t.view()).code == status::ok);
      }
      REQUIRE(bytes == whole);
    }
  }
}

/// The same numbers as engines hold them.
std::vector<plain_memory> other_places(rows const& x, dtype type) {
  std::vector<plain_memory> all;
  all.push_back(contiguous_memory(x, type, order::head_major));
  all.push_back(strided(x, type, {heads * head_dim + 8, head_dim, 0}));        // token stride + 8
  all.push_back(strided(x, type, {heads * (head_dim + 2), head_dim + 2, 0}));  // padded rows
  // K and V of a token in one row: K at its begin, V behind it.
  tensor_strides const packed{2 * heads * head_dim, head_dim, 0};
  auto const v_begin = static_cast<std::size_t>(heads * head_dim * element_size(type));
  all.push_back(strided(x, type, packed));
  all.push_back(strided(x, type, packed, v_begin));
  // Memory that is not aligned to elements.
  tensor_strides const plain = contiguous(order::token_major, heads, head_dim, tokens);
  all.push_back(strided(x, type, plain, 1));
  all.push_back(strided(x, type, plain, 2));
  return all;
}

TEST_CASE("sources of any strides, order and alignment store the same bytes") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  rows const x = example_rows(seed);
  transform const t = example_transform(false);
  int turn = 0;
  for (auto const& c : all_codecs()) {
    dtype const type = static_cast<dtype>(turn++ % 3);
    CAPTURE(c.name(), to_string(type));
    layout const m = c.head_tiles(heads, head_dim, tokens, options);
    auto const expected = encoded(c, m, contiguous_memory(x, type).source(), t.view());
    int place = 0;
    for (auto const& memory : other_places(x, type)) {
      CAPTURE(place++);
      REQUIRE(encoded(c, m, memory.source(), t.view()) == expected);
    }
  }
}

TEST_CASE("targets of any strides and alignment get the same rows, and nothing between them") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  rows const x = example_rows(seed);
  transform const t = example_transform(true);
  int turn = 0;
  for (auto const& c : all_codecs()) {
    dtype const type = static_cast<dtype>(turn++ % 3);
    CAPTURE(c.name(), to_string(type));
    layout const m = c.head_tiles(heads, head_dim, tokens, options);
    auto const bytes = encoded(c, m, x.source(), t.view());
    rows const y = decoded(c, m, bytes.data(), tokens, t.view());
    rows const blank(heads, head_dim, tokens, 777.0f);
    auto const expected = other_places(y, type);
    auto targets = other_places(blank, type);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      CAPTURE(i);
      REQUIRE(c.decode({bytes.data(), m, {}}, targets[i].target(), {0, tokens}, t.view()) ==
              status::ok);
      REQUIRE(targets[i].bytes == expected[i].bytes);
    }
  }
}

TEST_CASE("coded memory of any alignment holds the same bytes") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  rows const x = example_rows(seed);
  for (auto const& c : all_codecs()) {
    CAPTURE(c.name());
    tile_options const packed{.tile_tokens = 32, .group = group, .alignment = 1};
    layout const m = c.head_tiles(heads, head_dim, tokens, packed);
    auto const expected = encoded(c, m, x.source());
    for (std::size_t const shift : {1u, 2u, 5u}) {
      std::vector<std::byte> bytes(expected.size() + shift);
      REQUIRE(c.encode({bytes.data() + shift, m, {}}, x.source(), {0, tokens}, {}).code ==
              status::ok);
      REQUIRE(
          std::equal(expected.begin(), expected.end(), bytes.begin() + static_cast<int>(shift)));
      REQUIRE(decoded(c, m, bytes.data() + shift, tokens).values ==
              decoded(c, m, expected.data(), tokens).values);
    }
  }
}

TEST_CASE("row records, tiles and pages decode alike") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  rows const x = example_rows(seed);
  transform const t = example_transform(true);
  std::vector<std::int32_t> const pages{4, 0, 3, 7, 1};  // of 8 pages of 16 tokens
  for (auto const& c : all_codecs()) {
    CAPTURE(c.name());
    layout const m = c.head_tiles(heads, head_dim, tokens, options);
    auto const bytes = encoded(c, m, x.source(), t.view());
    rows const expected = decoded(c, m, bytes.data(), tokens, t.view());
    if (c.row_records != nullptr) {
      layout const records = c.row_records(heads, head_dim, tokens, 64, group);
      auto const in_records = encoded(c, records, x.source(), t.view());
      REQUIRE(decoded(c, records, in_records.data(), tokens, t.view()).values == expected.values);
    }
    layout const paged = c.pages(heads, head_dim, 8, 16, {.tile_tokens = 16, .group = group});
    std::vector<std::byte> pool(static_cast<std::size_t>(paged.size_bytes()));
    block_table const table{pages.data(), 5};
    REQUIRE(c.encode({pool.data(), paged, table}, x.source(), {0, tokens}, t.view()).code ==
            status::ok);
    rows y(heads, head_dim, tokens);
    REQUIRE(c.decode({pool.data(), paged, table}, y.target(), {0, tokens}, t.view()) == status::ok);
    REQUIRE(y.values == expected.values);
  }
}

TEST_CASE("a part of a range decodes as in the whole") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  rows const x = example_rows(seed);
  for (auto const& c : all_codecs()) {
    CAPTURE(c.name());
    layout const m = c.head_tiles(heads, head_dim, tokens, options);
    auto const bytes = encoded(c, m, x.source());
    rows const whole = decoded(c, m, bytes.data(), tokens);
    for (token_range const part : {token_range{0, 1}, {31, 34}, {13, 77}, {76, 77}, {40, 40}}) {
      rows y(heads, head_dim, part.size());
      REQUIRE(c.decode({bytes.data(), m, {}}, y.target(), part, {}) == status::ok);
      auto const begin = whole.values.begin() + static_cast<int>(whole.index(part.begin, 0, 0));
      REQUIRE(std::equal(y.values.begin(), y.values.end(), begin));
    }
  }
}

TEST_CASE("heads do not leak into each other: head h times 2^h scales by 2^h") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  rows one = normal_rows(random, 1, head_dim, tokens);
  for (float& x : one.values) x += std::copysign(0.02f, x);  // stays above fp16's subnormals
  rows x(4, head_dim, tokens);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int h = 0; h < 4; ++h) {
      for (int d = 0; d < head_dim; ++d) x.at(t, h, d) = std::ldexp(one.at(t, 0, d), h - 1);
    }
  }
  for (auto const& c : all_codecs()) {
    CAPTURE(c.name());
    layout const m = c.head_tiles(4, head_dim, tokens, options);
    auto const bytes = encoded(c, m, x.source());
    rows const y = decoded(c, m, bytes.data(), tokens);
    int differences = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (int h = 1; h < 4; ++h) {
        // Powers of two commute with every rounding.
        for (int d = 0; d < head_dim; ++d) {
          differences += std::ldexp(y.at(t, 0, d), h) == y.at(t, h, d) ? 0 : 1;
        }
      }
    }
    CHECK(differences == 0);
  }
}

}  // namespace
