// SPDX-License-Identifier: Apache-2.0
// Encoders write what the layout owns and nothing else, and read no token beyond the range.
#include "support/any_codec.hpp"
#include "support/catch.hpp"
#include "support/fenced_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

constexpr int heads = 2, head_dim = 46, group = 16;
constexpr tile_options options{.tile_tokens = 32, .group = group, .alignment = 64};

rows example_rows(std::uint64_t seed, std::int64_t tokens) {
  random_source random(seed);
  return normal_rows(random, heads, head_dim, tokens);
}

/// Every kind of layout that the codec has, with room for `tokens`.
std::vector<layout> layouts_of(any_codec const& c, std::int64_t tokens) {
  std::vector<layout> all{c.head_tiles(heads, head_dim, tokens, options),
                          c.head_tiles(heads, head_dim, tokens, {.group = group, .alignment = 1})};
  if (c.row_records != nullptr) {
    all.push_back(c.row_records(heads, head_dim, tokens, 128, group));
    all.push_back(c.row_records(heads, head_dim, tokens, 1, group));
  }
  return all;
}

/// Rows that end where memory ends.
struct fenced_rows {
  fenced_memory memory;
  source_view source;

  fenced_rows(rows const& x, dtype type) : memory(contiguous_memory(x, type).bytes.size()) {
    auto const m = contiguous_memory(x, type);
    std::copy(m.bytes.begin(), m.bytes.end(), memory.data());
    source = {memory.data(), type, m.map, {}};
  }
};

TEST_CASE("encoders and decoders stay inside exact memory") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  int turn = 0;
  for (std::int64_t const tokens : {1, 15, 16, 33, 64}) {
    rows const x = example_rows(seed, tokens);
    for (auto const& c : all_codecs()) {
      dtype const type = static_cast<dtype>(turn++ % 3);
      CAPTURE(tokens, c.name(), to_string(type));
      fenced_rows const source(x, type);
      for (layout const& m : layouts_of(c, tokens)) {
        fenced_memory const memory(static_cast<std::size_t>(m.size_bytes()), std::byte{0xFF});
        REQUIRE(c.encode({memory.data(), m, {}}, source.source, {0, tokens}, {}).code ==
                status::ok);
        REQUIRE(memory.front_intact());
        fenced_rows target(rows(heads, head_dim, tokens), type);
        target_view const to{target.memory.data(), type, target.source.map, {}};
        REQUIRE(c.decode({memory.data(), m, {}}, to, {0, tokens}, {}) == status::ok);
        REQUIRE(target.memory.front_intact());
      }
    }
  }
}

TEST_CASE("2016 tokens end at the end of memory") {
  rows const x = example_rows(3, 2016);
  for (auto const& c : all_codecs()) {
    CAPTURE(c.name());
    fenced_rows const source(x, dtype::bf16);
    layout const m = c.head_tiles(heads, head_dim, 2016, {.group = 32, .alignment = 1});
    fenced_memory const memory(static_cast<std::size_t>(m.size_bytes()));
    REQUIRE(c.encode({memory.data(), m, {}}, source.source, {0, 2016}, {}).code == status::ok);
    rows y(heads, head_dim, 1);
    REQUIRE(c.decode({memory.data(), m, {}}, y.target(), {2015, 2016}, {}) == status::ok);
  }
}

TEST_CASE("what memory held before does not matter: padding is zeros") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  rows const x = example_rows(seed, 64);
  for (auto const& c : all_codecs()) {
    CAPTURE(c.name());
    for (layout const& m : layouts_of(c, 64)) {  // 64 tokens fill all tiles
      auto const clean = encoded(c, m, x.source(), {}, std::byte{0});
      REQUIRE(encoded(c, m, x.source(), {}, std::byte{0xFF}) == clean);
      REQUIRE(encoded(c, m, x.source(), {}, std::byte{0x7E}) == clean);
    }
  }
}

TEST_CASE("a tile that is not full: slots without tokens keep their bytes, padding is zeros") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  rows const x = example_rows(seed, 33);
  for (auto const& c : all_codecs()) {
    CAPTURE(c.name());
    layout const m = c.head_tiles(heads, head_dim, 33, options);
    auto const zeros = encoded(c, m, x.source(), {}, std::byte{0});
    auto const ones = encoded(c, m, x.source(), {}, std::byte{0xFF});
    // A bit is written (and equal), or it is as it was.
    bool alike = true;
    for (std::size_t i = 0; i < zeros.size(); ++i) {
      alike = alike && (zeros[i] & ~ones[i]) == std::byte{0};
    }
    CHECK(alike);
    for (int h = 0; h < heads; ++h) {
      for (std::int64_t tile = 0; tile < 2; ++tile) {
        std::byte const* const at = ones.data() + m.tile_padding.at(0, tile, h);
        CHECK(std::all_of(at, at + m.tile_padding.bytes,
                          [](std::byte b) { return b == std::byte{0}; }));
      }
    }
    std::byte const* const end = ones.data() + m.page_padding.offset;
    CHECK(std::all_of(end, end + m.page_padding.bytes,
                      [](std::byte b) { return b == std::byte{0}; }));
    CHECK(decoded(c, m, ones.data(), 33).values == decoded(c, m, zeros.data(), 33).values);
  }
}

/// The layout with gaps between all parts, as an engine's structures may have them.
layout with_gaps(layout m) {
  for (plane* const p : {&m.codes, &m.scales, &m.zeros, &m.tile_padding}) {
    p->tile_stride = 2 * p->tile_stride + 24;
    p->head_stride *= 3;
    p->offset += 8;
  }
  m.codes.head_stride = m.scales.head_stride = m.zeros.head_stride = m.tile_padding.head_stride =
      m.codes.tile_stride * m.tiles() + 40;
  m.page_padding = {};
  return m;
}

TEST_CASE("bytes between the parts of a layout are kept") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  rows const x = example_rows(seed, 64);
  for (auto const& c : all_codecs()) {
    if (c.info.grouped_along == axis::row && !c.info.plain) continue;  // their scales lie apart
    CAPTURE(c.name());
    layout const m = with_gaps(c.head_tiles(heads, head_dim, 64, options));
    REQUIRE(c.check(m).sentence() == "");
    auto const a = encoded(c, m, x.source(), {}, std::byte{0xA5});
    std::vector<bool> owned(a.size());
    for (plane const& p : {m.codes, m.scales, m.zeros, m.tile_padding}) {
      for (int h = 0; h < heads; ++h) {
        for (std::int64_t tile = 0; tile < 2; ++tile) {
          std::int64_t const begin = p.offset + tile * p.tile_stride + h * p.head_stride;
          for (std::int64_t i = 0; i < p.bytes; ++i)
            owned[static_cast<std::size_t>(begin + i)] = true;
        }
      }
    }
    bool kept = true;
    for (std::size_t i = 0; i < a.size(); ++i) kept = kept && (owned[i] || a[i] == std::byte{0xA5});
    CHECK(kept);
    layout const plain = c.head_tiles(heads, head_dim, 64, options);
    auto const b = encoded(c, plain, x.source());
    CHECK(decoded(c, m, a.data(), 64).values == decoded(c, plain, b.data(), 64).values);
  }
}

TEST_CASE("encoding a token again leaves the others") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  rows const x = example_rows(seed, 64);
  rows const other = example_rows(seed + 1, 16);
  for (auto const& c : all_codecs()) {
    CAPTURE(c.name());
    int const count = c.along_tokens() ? group : 1;
    layout const m = c.head_tiles(heads, head_dim, 64, options);
    auto bytes = encoded(c, m, x.source());
    rows const before = decoded(c, m, bytes.data(), 64);
    source_view part = other.source();
    part.map.tokens = count;
    REQUIRE(c.encode({bytes.data(), m, {}}, part, {16, 16 + count}, {}).code == status::ok);
    rows const after = decoded(c, m, bytes.data(), 64);
    int changed = 0;
    for (std::int64_t t = 0; t < 64; ++t) {
      bool const again = t >= 16 && t < 16 + count;
      for (int d = 0; d < head_dim && !again; ++d) {
        changed += before.at(t, 1, d) == after.at(t, 1, d) ? 0 : 1;
      }
    }
    CHECK(changed == 0);
    CHECK(before.values != after.values);
  }
}

}  // namespace
