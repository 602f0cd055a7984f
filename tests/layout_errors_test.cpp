// SPDX-License-Identifier: Apache-2.0
// Every layout that cannot be is refused when it is made, in a sentence with the number.
#include "support/catch.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <limits>
#include <string>

namespace {

using namespace kvarts;
using Catch::Matchers::ContainsSubstring;

using int8_rows = row_codec<int8_head>;
using by_channel = codec<symmetric<4, range::wide>, axis::channel>;
using by_channel_32 = codec<symmetric<4, range::wide>, axis::channel, 32>;
using by_token = codec<affine<2>, axis::token>;
using by_token_32 = codec<affine<2>, axis::token, 32>;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

/// `make` throws an error of this code whose sentence holds `part`.
template <class F>
void require_refused(status code, std::string const& part, F&& make) {
  CAPTURE(part);
  try {
    make();
  } catch (error const& e) {
    CHECK(to_string(e.code()) == std::string(to_string(code)));
    CHECK_THAT(e.what(), ContainsSubstring(part));
    return;
  }
  FAIL("is not refused");
}

template <class C>
void require_bad(layout const& m, status code, std::string const& part) {
  CAPTURE(part);
  problem const p = check<C>(m);
  CHECK(to_string(p.code) == std::string(to_string(code)));
  CHECK(validate<C>(m) == p.code);
  CHECK_THAT(p.sentence(), ContainsSubstring(part));
}

TEST_CASE("head_dim outside 1..1024") {
  for (int const d : {0, -1, 1025, 1 << 30}) {
    auto const text = "head_dim is " + std::to_string(d);
    require_refused(status::bad_head_dim, text, [&] { make_row_records<int8_rows>(1, d, 1); });
    require_refused(status::bad_head_dim, text, [&] { make_head_tiles<by_token>(1, d, 1); });
    require_refused(status::bad_head_dim, text, [&] { make_pages<by_channel>(1, d, 1, 32); });
    require_refused(status::bad_head_dim, text, [&] {
      make_tensor_layout(dtype::f16, 1, d, 1, {1024, 1024});
    });
  }
  CHECK_NOTHROW(make_head_tiles<by_token>(1, 1024, 1));
}

TEST_CASE("no heads, or too many") {
  for (int const heads : {0, -3, 65537}) {
    auto const text = std::to_string(heads);
    require_refused(status::bad_heads, text, [&] { make_row_records<int8_rows>(heads, 64, 1); });
    require_refused(status::bad_heads, text, [&] { make_head_tiles<by_token>(heads, 64, 1); });
    require_refused(status::bad_heads, text, [&] { make_pages<by_channel>(heads, 64, 1, 32); });
  }
}

TEST_CASE("tokens below zero, or more than 2^31") {
  for (std::int64_t const tokens :
       {std::int64_t{-1}, (std::int64_t{1} << 31) + 1, most, -most - 1}) {
    auto const text = std::to_string(tokens);
    require_refused(status::bad_tokens, text, [&] { make_row_records<int8_rows>(2, 64, tokens); });
    require_refused(status::bad_tokens, text, [&] { make_head_tiles<by_token>(2, 64, tokens); });
    require_refused(status::bad_tokens, text, [&] { make_head_tiles<int8_rows>(1, 64, tokens); });
  }
  require_refused(status::bad_tokens, "-1", [] { make_pages<by_channel>(2, 64, -1, 1); });
  require_refused(status::bad_tokens, "2147483680",
                  [] { make_pages<by_channel>(2, 64, (std::int64_t{1} << 26) + 1, 32); });
}

TEST_CASE("head tiles up to the most tokens are either right or refused") {
  for (std::int64_t const tokens : {std::int64_t{1} << 30, (std::int64_t{1} << 30) + 1,
                                    (std::int64_t{1} << 31) - 31, std::int64_t{1} << 31}) {
    CAPTURE(tokens);
    std::int64_t size = 0;
    try {
      size = make_head_tiles<int8_rows>(1, 64, tokens).size_bytes();
    } catch (error const& e) {
      CHECK(e.code() == status::bad_tokens);
      CHECK_THAT(e.what(), ContainsSubstring(std::to_string(tokens)));
      continue;
    }
    CHECK(size == round_up(round_up(tokens, 32) * 66, 128));
  }
}

TEST_CASE("groups that are not positive, too long, or not the codec's") {
  require_refused(status::bad_group, "-16", [] { make_row_records<by_channel>(1, 64, 1, 1, -16); });
  require_refused(status::bad_group, "-1",
                  [] { make_head_tiles<by_token>(1, 64, 1, {.group = -1}); });
  require_refused(status::bad_group, "1025",
                  [] { make_head_tiles<by_channel>(1, 64, 1, {.group = 1025}); });
  require_refused(status::bad_group, "2147483647",
                  [] { make_head_tiles<by_token>(1, 64, 1, {.group = 2147483647}); });
  require_refused(status::bad_group, "is 64 where the codec has 32",
                  [] { make_head_tiles<by_channel_32>(1, 64, 1, {.group = 64}); });
  require_refused(status::bad_group, "is 16 where the codec has 32",
                  [] { make_pages<by_token_32>(1, 64, 1, 32, {.group = 16}); });
}

TEST_CASE("tiles that are not positive or cut a group of tokens") {
  require_refused(status::bad_tile, "-32",
                  [] { make_head_tiles<int8_rows>(1, 64, 1, {.tile_tokens = -32}); });
  require_refused(status::bad_tile, "1048577",
                  [] { make_head_tiles<int8_rows>(1, 64, 1, {.tile_tokens = 1048577}); });
  require_refused(status::bad_tile, "a tile of 48 tokens does not hold whole groups of 32 tokens",
                  [] { make_head_tiles<by_token>(1, 64, 1, {.tile_tokens = 48, .group = 32}); });
}

TEST_CASE("pages that tiles do not divide") {
  require_refused(status::bad_page, "a page of 48 tokens does not hold whole tiles of 32 tokens",
                  [] { make_pages<by_token>(1, 64, 2, 48); });
  require_refused(status::bad_page, "a page of 16 tokens",
                  [] { make_pages<int8_rows>(1, 64, 2, 16, {.tile_tokens = 32}); });
  require_refused(status::bad_page, "page of 0 tokens", [] { make_pages<int8_rows>(1, 64, 2, 0); });
  require_refused(status::bad_page, "page of -32 tokens",
                  [] { make_pages<int8_rows>(1, 64, 2, -32); });
  layout m = make_pages<int8_rows>(1, 64, 2, 32);
  m.tokens = 63;
  require_bad<int8_rows>(m, status::bad_page, "room for 63 tokens");
}

TEST_CASE("alignments that are no power of two") {
  for (int const alignment : {0, -128, 3, 96, 127, 1 << 21}) {
    auto const text = std::to_string(alignment);
    require_refused(status::bad_alignment, text,
                    [&] { make_row_records<int8_rows>(1, 64, 1, alignment); });
    require_refused(status::bad_alignment, text,
                    [&] { make_head_tiles<by_token>(1, 64, 1, {.alignment = alignment}); });
    require_refused(status::bad_alignment, text,
                    [&] { make_pages<by_token>(1, 64, 1, 32, {.alignment = alignment}); });
  }
}

TEST_CASE("planes that are missing, superfluous or of another size") {
  layout const good = make_head_tiles<by_token>(2, 64, 64);
  layout m = good;
  m.scales = {};
  require_bad<by_token>(m, status::bad_plane, "has 0 bytes a tile where the codec needs 128");
  m = good;
  m.zeros = {};
  require_bad<by_token>(m, status::bad_plane, "has 0 bytes a tile where the codec needs 128");
  m = good;
  m.codes.bytes -= 1;
  require_bad<by_token>(m, status::bad_plane, "has 511 bytes a tile where the codec needs 512");
  m = good;
  m.codes.offset = -1;
  require_bad<by_token>(m, status::bad_plane, "-1");

  // Zero-points where the codec has none; the layout of another codec of the same bits.
  using wide_2 = codec<symmetric<2, range::wide>, axis::token>;
  require_bad<wide_2>(good, status::bad_plane, "has 128 bytes a tile where the codec needs 0");
  require_bad<row_codec<midrise<2>>>(good, status::bad_plane, "where the codec needs 64");
  // Eight-bit codes of another quantizer have the same size but other scales.
  require_bad<codec<symmetric<8, range::wide>, axis::channel>>(
      make_row_records<int8_rows>(1, 64, 1), status::bad_group, "0");
}

TEST_CASE("padding that is negative or lies outside the layout") {
  layout const good = make_row_records<int8_rows>(2, 64, 10, 128);
  for (std::int64_t const bytes : {std::int64_t{-1}, most}) {
    layout m = good;
    m.tile_padding.bytes = bytes;
    CAPTURE(bytes);
    CHECK(validate<int8_rows>(m) != status::ok);
  }
  layout m = good;
  m.tile_padding.offset = -64;
  CHECK(validate<int8_rows>(m) != status::ok);
  m = good;
  m.tile_padding.head_stride = most / 2;
  m.tile_padding.tile_stride = most / 2;
  CHECK(validate<int8_rows>(m) != status::ok);
  m = make_pages<int8_rows>(1, 46, 3, 16);
  m.page_padding.bytes = -5;
  CHECK(validate<int8_rows>(m) != status::ok);
}

TEST_CASE("plain tensors whose rows overlap") {
  require_refused(status::bad_stride, "a stride of 252 bytes makes parts of 256 bytes overlap", [] {
    make_tensor_layout(dtype::f16, 2, 128, 10, {126, 1280});
  });
  require_refused(status::bad_stride, "overlap", [] {
    make_tensor_layout(dtype::f16, 2, 128, 10, {128, 1279});
  });
  require_refused(status::bad_stride, "overlap", [] {
    make_tensor_layout(dtype::f32, 2, 128, 10, {0, 128});
  });
  require_refused(status::bad_stride, "-512", [] {
    make_tensor_layout(dtype::f32, 2, 128, 10, {-128, 1280});
  });
  require_refused(status::bad_stride, "2^60", [] {
    make_tensor_layout(dtype::f32, 2, 128, 10, {most / 8, 128});
  });
  require_refused(status::bad_stride, "overlap", [] {
    make_tensor_layout(dtype::f16, 1, 128, 64, {128, 128, 16 * 128 - 1}, 16);
  });
  require_refused(status::bad_page, "room for 60 tokens", [] {
    make_tensor_layout(dtype::f16, 1, 128, 60, {128, 128, 16 * 128}, 16);
  });
  // Strides of extents of 1 do not matter.
  CHECK_NOTHROW(make_tensor_layout(dtype::f16, 1, 128, 10, {128, 0}));
  CHECK_NOTHROW(make_tensor_layout(dtype::f16, 4, 128, 1, {0, 128}));
}

}  // namespace
