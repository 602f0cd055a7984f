// SPDX-License-Identifier: Apache-2.0
// A page file that is cut, damaged or of another tier is refused in a sentence with both numbers,
// and the tier stays as it was.
#include "support/allocation_watch.hpp"
#include "support/bitwise_crc32c.hpp"
#include "support/byte_strings.hpp"
#include "support/catch.hpp"
#include "support/page_files.hpp"

#include <kvarts/scheme.hpp>

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tier;
using Catch::Matchers::ContainsSubstring;

using int8_rows = row_codec<int8_head>;
using grouped = codec<symmetric<3, range::wide>, axis::channel>;

constexpr int pages = 3;

geometry usual() {
  geometry g = uniform_geometry(4, 2, segment_of<grouped>(20, 8), segment_of<int8_rows>(20));
  g.page_tokens = 2;
  g.alignment = 16;
  g.placement = host_layout::page_first;
  return g;
}

page_place place() { return {side::keys, 1, 2, 2, 6, counted(7)}; }

/// A tier, a page file of it, and another memory into which files are restored.
struct example {
  page_format format{page_config{usual()}};
  byte_vector file;
  byte_vector live;

  example() {
    random_source random(5);
    auto const bytes = size_bytes(format.shape, side::keys, pages);
    file = page_file(format, place(), random_bytes(random, bytes), 1);
    live = random_bytes(random, bytes);
  }

  /// The sentence of a restore that must be refused and write nothing.
  std::string refused(std::span<std::byte const> damaged) {
    byte_vector const before = live;
    problem const p = restore_page(format, place(), damaged, live, 2);
    REQUIRE(p);
    REQUIRE(live == before);
    return p.sentence();
  }
};

TEST_CASE("a page file cut or extended anywhere is refused and leaves the tier as it was") {
  example e;
  for (std::size_t size = 0; size < e.file.size(); ++size) {
    byte_vector const cut(e.file.begin(), e.file.begin() + static_cast<std::ptrdiff_t>(size));
    INFO("cut to " << size << " bytes");
    e.refused(cut);
  }
  CHECK_THAT(e.refused(std::span(e.file).first(255)), ContainsSubstring("255 bytes are too few"));
  CHECK_THAT(e.refused(std::span(e.file).first(300)),
             ContainsSubstring("has 300 bytes, but its header promises 384"));
  byte_vector longer = e.file;
  longer.push_back(std::byte{0});
  CHECK_THAT(e.refused(longer), ContainsSubstring("has 385 bytes"));
  CHECK_FALSE(restore_page(e.format, place(), e.file, e.live, 2));
}

TEST_CASE("every flipped byte and bit of a page file is refused and leaves the tier as it was") {
  example e;
  for (std::size_t i = 0; i < e.file.size(); ++i) {
    for (int const flip : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      byte_vector damaged = e.file;
      damaged[i] ^= static_cast<std::byte>(flip);
      INFO("byte " << i << " xor " << flip);
      e.refused(damaged);
    }
  }
}

TEST_CASE("every changed header byte is refused even when the header's CRC is made right") {
  example e;
  for (std::size_t i = 0; i < 252; ++i) {
    for (int const flip : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      byte_vector damaged = e.file;
      damaged[i] ^= static_cast<std::byte>(flip);
      store_unaligned(&damaged[252], bitwise_crc32c(std::span(damaged).first(252)));
      INFO("byte " << i << " xor " << flip);
      e.refused(damaged);
    }
  }
}

/// A change of what a tier is or of what it looks for, and the sentence about the example's file.
struct mismatch {
  std::function<void(geometry&, page_place&)> change;
  std::string sentence;
};

TEST_CASE("a page of another tier or place is refused with both numbers") {
  using codec_change = std::function<segment()>;
  auto const coded = [](codec_change const& c) {
    return [c](geometry& g, page_place&) { g.kinds[0].keys = c(); };
  };
  std::vector<mismatch> const all = {
      {coded([] { return segment_of<codec<symmetric<4, range::wide>, axis::channel>>(20, 8); }),
       "codes of 3 bits, the tier of 4"},
      {coded([] { return segment_of<int8_rows>(20); }), "codes of 3 bits, the tier of 8"},
      {coded([] { return segment_of<row_codec<codebook<3, float>>>(20); }),
       "groups along axis 1, the tier along 0"},
      {coded([] { return segment_of<grouped>(20, 4); }), "groups of 8, the tier of 4"},
      {coded([] { return segment_of<codec<affine<3>, axis::channel>>(20, 8); }),
       "zero-points are 0 in the page and 1 in the tier"},
      {coded([] { return segment_of<codec<symmetric<3, range::narrow>, axis::channel>>(20, 8); }),
       "another codec of 3 bits than the tier's of 3"},
      {coded([] { return segment_of<grouped>(24, 8); }), "head_dim 20, the tier has 24"},
      {[](geometry& g, page_place&) { g.heads = 4; }, "has 2 heads, the tier has 4"},
      {[](geometry& g, page_place&) { g.page_tokens = 4; }, "2 tokens, the tier's pages have 4"},
      {[](geometry& g, page_place&) { g.alignment = 128; }, "to 16 bytes, the tier to 128"},
      {[](geometry& g, page_place&) { g.record = record_kind::page; }, "kind 0, the tier of 1"},
      {[](geometry& g, page_place&) { g.placement = host_layout::page_head; },
       "host layout 1, the tier has 3"},
      {[](geometry& g, page_place&) { g.head_order = order::token_major; },
       "heads in order 1, the tier in 0"},
      {[](geometry& g, page_place&) { g.layers = 5; }, "a tier of 4 layers, not of 5"},
      {[](geometry& g, page_place& at) {
         at.which = side::values;
         g.kinds[0].values = g.kinds[0].keys;
       },
       "of side 0 (0 is K), not of 1"},
      {[](geometry&, page_place& at) { at.first_layer = 0; }, "begins at layer 1, not at 0"},
      {[](geometry&, page_place& at) { at.layers = 3; }, "has 2 layers, not 3"},
      {[](geometry&, page_place& at) { at.first_head = 4; }, "KV head 2, not at 4"},
      {[](geometry&, page_place& at) { at.model_heads = 8; }, "of 6 KV heads, not of 8"},
      {[](geometry& g, page_place&) {
         g.kinds[1].keys = segment_of<int8_rows>(20);
         g.kind_of_layer[2] = 1;
       },
       "payload of 128 bytes, the tier's pages of 160"},
      {[](geometry& g, page_place&) { g.kinds[0].values = segment_of<int8_rows>(21); },
       "configuration"},
      {[](geometry&, page_place& at) { at.key = counted(8); },
       "key begins with 1979159753198605, not with 2261738553347342"},
  };
  example e;
  for (mismatch const& m : all) {
    geometry g = usual();
    page_place at = place();
    m.change(g, at);
    page_format const other{page_config{g}};
    byte_vector live(static_cast<std::size_t>(size_bytes(g, at.which, pages)), std::byte{0x5A});
    byte_vector const before = live;
    INFO(m.sentence);
    allocation_watch const watch;
    problem const p = restore_page(other, at, e.file, live, 0);
    std::size_t const allocated = watch.bytes();
    CHECK(allocated == 0);
    CHECK_THAT(p.sentence(), ContainsSubstring(m.sentence));
    CHECK(live == before);
  }
}

TEST_CASE("scale types, row types, transforms and models of others are refused") {
  geometry g = usual();
  g.kinds[0].keys = segment_of<row_codec<codebook<3, float>>>(20);
  page_format const floats{page_config{g}};
  random_source random(1);
  byte_vector live = random_bytes(random, size_bytes(g, side::keys, pages));
  byte_vector const file = page_file(floats, place(), live, 0);
  auto const refused = [&](page_config const& c) {
    return check_page_file(page_format(c), place(), file).sentence();
  };
  CHECK(refused({g}).empty());
  CHECK_THAT(refused({g, dtype::f16}), ContainsSubstring("rows of type 1, the tier is of 0"));
  CHECK_THAT(refused({g, dtype::bf16, {}, {}, "other"}), ContainsSubstring("configuration"));
  std::vector<transform_view> const rotated(4, {nullptr, nullptr, 0, {1, 1}});
  CHECK_THAT(refused({g, dtype::bf16, rotated}), ContainsSubstring("configuration"));
  g.kinds[0].keys = segment_of<row_codec<codebook<3, half>>>(20);
  CHECK_THAT(refused({g}), ContainsSubstring("scales of type 3, the tier of 1"));
}

TEST_CASE("pages and places that there are not are refused before anything is written") {
  example e;
  auto const sentence = [&](page_place const& at, std::int64_t page, std::size_t memory) {
    byte_vector file(e.file.size(), std::byte{1});
    byte_vector const before = file;
    problem const p = write_page(e.format, at, std::span(e.live).first(memory), page, file);
    CHECK(file == before);
    CHECK(static_cast<bool>(restore_page(e.format, at, e.file, e.live, page)) ==
          (memory == e.live.size()));
    return p.sentence();
  };
  std::size_t const all = e.live.size();
  CHECK_THAT(sentence(place(), 3, all), ContainsSubstring("no page 3 among 3"));
  CHECK_THAT(sentence(place(), -1, all), ContainsSubstring("no page -1"));
  CHECK_THAT(sentence(place(), 0, all - 1), ContainsSubstring("no whole number of pages of 256"));
  auto const changed = [](auto change) {
    page_place at = place();
    change(at);
    return at;
  };
  auto const layers = [&](int first, int count) {
    return changed([=](page_place& at) { at.first_layer = first, at.layers = count; });
  };
  for (auto const& at : {layers(3, 2), layers(-1, 2), layers(0, 0), layers(0, 5), layers(4, 1)}) {
    CHECK_THAT(sentence(at, 0, all), ContainsSubstring("are not all in the tier"));
  }
  auto const heads = changed([](page_place& at) { at.first_head = 5; });
  CHECK_THAT(sentence(heads, 0, all), ContainsSubstring("from 5 on are not all among the 6"));
  byte_vector small(383);
  CHECK_THAT(write_page(e.format, place(), e.live, 0, small).sentence(),
             ContainsSubstring("room for 383 bytes, but the page file has 384"));
  page_config none{usual()};
  none.shape.kinds[0].values = {};
  CHECK_THAT(check(page_format(none), {side::values, 1, 1, 0, 2, {}}).sentence(),
             ContainsSubstring("layer 1 keeps nothing of side 1"));
}

TEST_CASE("a .kvt file of one tensor is no page") {
  example e;
  kvt_header h;
  h.set_codec_name("f16");
  h.code_bits = 16;
  h.heads = h.head_dim = 1;
  CHECK_THAT(e.refused(kvarts::serialize(h)), ContainsSubstring("without the fields of a page"));
  byte_vector later = e.file;
  later[108] = std::byte{2};
  store_unaligned(&later[252], bitwise_crc32c(std::span(later).first(252)));
  CHECK_THAT(e.refused(later), ContainsSubstring("page version is 2, but only 1 is known"));
}

}  // namespace
