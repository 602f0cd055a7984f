// SPDX-License-Identifier: Apache-2.0
// Page files hold the bytes of a tier's page, and bring back those and no others.
#include "support/allocation_watch.hpp"
#include "support/bitwise_crc32c.hpp"
#include "support/byte_strings.hpp"
#include "support/catch.hpp"
#include "support/page_files.hpp"
#include "support/rows.hpp"

#include <kvarts/decode.hpp>
#include <kvarts/encode.hpp>
#include <kvarts/scheme.hpp>

#include <cstring>
#include <span>
#include <string>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tier;

using int8_rows = row_codec<int8_head>;
using by_token = codec<symmetric<3, range::narrow>, axis::token, 32>;

constexpr int layers = 5, heads = 3, page_tokens = 4, pages = 6;

page_format format_of(geometry const& g) { return page_format(page_config{g}); }

/// Row records of 144 bytes (48 for one head), of 5 layers.
geometry rows_of_int8(host_layout how) {
  geometry g =
      uniform_geometry(layers, heads, segment_of<int8_rows>(46), segment_of<int8_rows>(80));
  g.page_tokens = page_tokens;
  g.alignment = 16;
  g.placement = how;
  return g;
}

TEST_CASE("a page file has the bytes that its description gives") {
  geometry g = uniform_geometry(7, 3, segment_of<identity<half>>(20),
                                segment_of<codec<affine<3>, axis::channel>>(20, 8));
  g.page_tokens = 2;
  g.alignment = 64;
  g.placement = host_layout::page_first;
  page_format f;
  f.shape = g;
  f.source = dtype::f32;
  f.configuration = counted(100);
  page_place const at{side::values, 4, 2, 6, 12, counted(1)};
  // A row is 8 bytes of codes a head, 3 scales and 3 zero-points: 60 bytes, 64 with the padding.
  random_source random(1);
  byte_vector const memory = random_bytes(random, 3 * 2 * 7 * 64);

  std::string payload;  // page 1, tokens 0 and 1, layers 4 and 5 each
  for (int token = 2; token < 4; ++token) {
    payload += text_of(std::span(memory).subspan((token * 7 + 4) * 64, 128));
  }
  std::string expected("\x89KVT\r\n\x1A\n", 8);
  expected += number<std::uint16_t>(1) + number<std::uint16_t>(256) + number<std::uint32_t>(64);
  expected += "affine3" + std::string(25, '\0');
  expected += std::string("\x03\x01\x01\x01\x02\x00\x00\x00", 8);
  expected += number<std::uint32_t>(8) + number<std::uint32_t>(1);
  expected += number<std::uint32_t>(3) + number<std::uint32_t>(20) + number<std::uint64_t>(2);
  expected += std::string(16, '\0');
  expected += number<std::uint64_t>(256) + number(bitwise_crc32c(bytes_of(payload)));
  expected += number<std::uint16_t>(1) + std::string("\x01\x00\x01\x01\x00\x00", 6);
  expected += number<std::uint32_t>(4) + number<std::uint32_t>(2) + number<std::uint32_t>(7);
  expected += number<std::uint32_t>(6) + number<std::uint32_t>(12);
  expected += text_of(counted(100)) + text_of(counted(1)) + std::string(52, '\0');
  expected += number(bitwise_crc32c(bytes_of(expected)));
  REQUIRE(expected.size() == 256);
  CHECK(page_file_bytes(f, at) == 512);
  CHECK(text_of(page_file(f, at, memory, 1)) == expected + payload);

  auto const [header, error] = parse_page_header(bytes_of(expected));
  REQUIRE_FALSE(error);
  CHECK(header.place == at);
  CHECK(header.configuration == counted(100));
  CHECK(parse_kvt(bytes_of(expected + payload)).error);  // no page is taken for one tensor
}

// The engines' formulas: R bytes a record, t slot, P tokens a page, L layers, S slots, H heads.
std::int64_t address(host_layout how, std::int64_t R, std::int64_t t, std::int64_t h,
                     std::int64_t l, std::int64_t P, std::int64_t L, std::int64_t S,
                     std::int64_t H) {
  std::int64_t const p = t / P, o = t % P, r = R;
  switch (how) {
    case host_layout::layer_first: return l * S * R + t * R;
    case host_layout::page_first: return t * L * R + l * R;
    case host_layout::page_first_direct: return p * L * P * R + l * P * R + o * R;
    default: return p * P * L * H * r + h * P * L * r + o * L * r + l * r;
  }
}

TEST_CASE("the payload is a tier of one page and the file's layers, in every host layout") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (host_layout const how : host_layouts) {
    page_format const f = format_of(rows_of_int8(how));
    bool const by_head = how == host_layout::page_head;
    std::int64_t const R = by_head ? 48 : 144;
    std::int64_t const per_token = by_head ? heads : 1;
    byte_vector const memory = random_bytes(random, size_bytes(f.shape, side::keys, pages));
    for (int first = 0; first < layers; ++first) {
      for (int count = 1; first + count <= layers; ++count) {
        CAPTURE(to_string(how), first, count);
        page_place const at{side::keys, first, count, 0, heads, {}};
        int const page = random.between(0, pages - 1);
        byte_vector const file = page_file(f, at, memory, page);
        REQUIRE(std::ssize(file) == 256 + count * page_tokens * per_token * R);
        for (int l = 0; l < count; ++l) {
          for (int o = 0; o < page_tokens; ++o) {
            for (std::int64_t h = 0; h < per_token; ++h) {
              auto const there = address(how, R, page * page_tokens + o, h, first + l, page_tokens,
                                         layers, page_tokens * pages, heads);
              auto const here =
                  address(how, R, o, h, l, page_tokens, count, page_tokens, heads) + 256;
              REQUIRE(std::memcmp(&memory[there], &file[here], static_cast<std::size_t>(R)) == 0);
            }
          }
        }
      }
    }
  }
}

/// Writes every page of `memory` in pieces of one to three layers, restores all of them elsewhere
/// in another order, and compares; without allocating.
void move_all(geometry const& g, side s, random_source& random) {
  page_format const f = format_of(g);
  byte_vector const memory = random_bytes(random, size_bytes(g, s, pages));
  byte_vector restored(memory.size());
  byte_vector back(memory.size());
  for (int page = 0; page < pages; ++page) {
    for (int first = 0; first < g.layers;) {
      int const count = std::min(random.between(1, 3), g.layers - first);
      page_place const at{s, first, count, 0, g.heads, counted(page)};
      byte_vector const file = page_file(f, at, memory, page);
      allocation_watch const watch;
      problem const p = restore_page(f, at, file, restored, pages - 1 - page);
      std::size_t const allocated = watch.bytes();
      REQUIRE_FALSE(p);
      REQUIRE(allocated == 0);
      first += count;
    }
  }
  for (int page = 0; page < pages; ++page) {
    page_place const at = whole_page(g, s);
    REQUIRE_FALSE(restore_page(f, at, page_file(f, at, restored, pages - 1 - page), back, page));
  }
  REQUIRE(back == memory);
}

TEST_CASE("pages come back bit for bit, with layers and K and V of different codecs") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (host_layout const how : host_layouts) {
    for (record_kind const record : {record_kind::row, record_kind::page}) {
      CAPTURE(to_string(how), record == record_kind::page);
      geometry g = rows_of_int8(how);
      g.record = record;
      g.kinds[1] = {segment_of<identity<half>>(46), segment_of<row_codec<midrise<3>>>(80)};
      g.kind_of_layer[0] = g.kind_of_layer[3] = 1;
      move_all(g, side::keys, random);
      move_all(g, side::values, random);
    }
  }
  geometry mla = rows_of_int8(host_layout::page_first);
  mla.heads = 1;
  mla.kinds[0].keys = {segment_of<row_codec<midrise<3>>>(512), segment_of<identity<bfloat16>>(64)};
  move_all(mla, side::keys, random);
}

TEST_CASE("views read the payload of a page file as it is") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  geometry g = uniform_geometry(2, 2, segment_of<by_token>(46), {});
  g.record = record_kind::page;
  g.page_tokens = 64;
  rows const in = normal_rows(random, 2, 46, 64);
  byte_vector memory(static_cast<std::size_t>(size_bytes(g, side::keys, 3)));
  std::int32_t const last = 2, first = 0;
  view<by_token> const coded{memory.data(), make_layout(g, side::keys, 1, 3), {&last, 1}};
  REQUIRE(encode(coded, in.source(), {0, 64}).code == status::ok);

  page_place const at{side::keys, 1, 1, 0, 2, {}};
  byte_vector const file = page_file(format_of(g), at, memory, 2);
  view<by_token, std::byte const> const payload{
      file.data() + 256, make_layout(layers_of(g, 1, 1), side::keys, 0, 1), {&first, 1}};
  rows direct(2, 46, 64), through_file(2, 46, 64);
  REQUIRE(decode(coded, direct.target(), {0, 64}) == status::ok);
  REQUIRE(decode(payload, through_file.target(), {0, 64}) == status::ok);
  CHECK(direct.values == through_file.values);
}

TEST_CASE("the ranks of a model write files that differ in their heads alone") {
  random_source random(3);
  page_format const f = format_of(rows_of_int8(host_layout::page_first));
  byte_vector const memory = random_bytes(random, size_bytes(f.shape, side::keys, 1));
  page_place const one{side::keys, 0, layers, 0, 2 * heads, {}};
  page_place const two{side::keys, 0, layers, heads, 2 * heads, {}};
  byte_vector const a = page_file(f, one, memory, 0), b = page_file(f, two, memory, 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    bool const head_or_crc = i == 128 || (i >= 252 && i < 256);
    if (!head_or_crc) REQUIRE(a[i] == b[i]);
  }
  CHECK(a[128] != b[128]);
}

}  // namespace
