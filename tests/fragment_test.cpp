// SPDX-License-Identifier: Apache-2.0
// Fragment packing is a bijection of every tile that it accepts, in the order of mma operands.
#include "support/any_codec.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

using keys = fragment<operand::keys>;
using values = fragment<operand::values>;

static_assert(packing<keys> && packing<values>);
// Bytes of a tile of 32 tokens at D = 128, and the ones that need a tail or are rounded up.
static_assert(keys::tile_bits({32, 128, 2}) / 8 == 1024);
static_assert(keys::tile_bits({32, 128, 3}) / 8 == 1536);
static_assert(values::tile_bits({32, 128, 4}) / 8 == 2048);
static_assert(values::tile_bits({32, 128, 8}) / 8 == 4096);
static_assert(keys::tile_bits({32, 96, 3}) / 8 == 9 * 128);
static_assert(keys::tile_bits({32, 80, 3}) / 8 == 8 * 128);  // 7.5 words a lane, rounded up

constexpr int head_dims[] = {16, 64, 80, 96, 128, 192, 256};
constexpr int tile_tokens[] = {16, 32, 48, 64};
constexpr int all_bits[] = {1, 2, 3, 4, 8};

template <class F>
void for_each_shape(F&& f) {
  for (int const bits : all_bits) {
    for (int const tokens : tile_tokens) {
      for (int const channels : head_dims) {
        tile_shape const s{tokens, channels, bits};
        CAPTURE(s.tokens, s.channels, s.bits);
        f(s);
      }
    }
  }
}

template <class P>
void require_bijection(tile_shape s) {
  std::vector<bool> owned(static_cast<std::size_t>(P::tile_bits(s)));
  bool inside = true, once = true, back = true;
  for (int t = 0; t < s.tokens; ++t) {
    for (int c = 0; c < s.channels; ++c) {
      auto const from = P::code_at(s, P::locate(s, t, c));
      back = back && from.token == t && from.channel == c;
      for (int k = 0; k < s.bits; ++k) {
        std::int64_t const at = P::bit_offset(s, t, c, k);
        inside = inside && at >= 0 && at < P::tile_bits(s);
        if (!inside) break;
        once = once && !owned[static_cast<std::size_t>(at)];
        owned[static_cast<std::size_t>(at)] = true;
      }
    }
  }
  REQUIRE(inside);
  REQUIRE(once);
  REQUIRE(back);
}

TEST_CASE("fragment packings are bijections, and locate has an inverse") {
  for_each_shape([](tile_shape s) {
    require_bijection<keys>(s);
    require_bijection<values>(s);
  });
}

/// All codes zero but one: what a lane sees in its words.
template <class P>
std::vector<std::uint32_t> lane_words(tile_shape s, int lane, int token, int channel,
                                      std::uint8_t code) {
  std::vector<std::byte> plane(static_cast<std::size_t>(P::tile_bits(s) / 8));
  P::store_run(plane.data(), s, token, channel, &code, 1);
  int const words = P::lane_block(s).words();
  std::vector<std::uint32_t> found;
  for (int w = 0; w < words; ++w) {
    found.push_back(load_unaligned<std::uint32_t>(plane.data() + P::word_offset(words, lane, w)));
  }
  return found;
}

TEST_CASE("a lane's words hold its mma operand") {
  // K, 4 bits: lane 4 g + r = 4 * 5 + 2. Operand register a[3] of the second 16 channels of the
  // first 16 tokens is (token g + 8; channels 16 + 2r + 8, + 9): field 1 of word 1, class 1.
  CHECK(lane_words<keys>({32, 64, 4}, 22, 13, 28, 0xA)[1] == 0x0000A000u);
  CHECK(lane_words<keys>({32, 64, 4}, 22, 13, 29, 0xA)[1] == 0xA0000000u);
  // a[0] of the first step is (token g; channels 2r, 2r + 1): field 0, class 0.
  CHECK(lane_words<keys>({32, 64, 4}, 22, 5, 4, 0xA)[0] == 0x0000000Au);
  // Its second 16 tokens follow all channels of the first: word 4 of D = 64.
  CHECK(lane_words<keys>({32, 64, 4}, 22, 16 + 5, 5, 0xA)[4] == 0x000A0000u);
  // V, 8 bits: rows are channels. (channel g + 8; tokens 16 + 2r, + 1) is field 2, class 1.
  CHECK(lane_words<values>({32, 64, 8}, 22, 21, 13, 0xC3)[2] == 0xC3000000u);
  // The lanes that do not own a code see nothing of it.
  for (auto const word : lane_words<values>({32, 64, 8}, 23, 21, 13, 0xC3)) CHECK(word == 0);
  // 3 bits: class 1 of the seventh field is the spare bits, one in each of three words.
  auto const spread = lane_words<keys>({32, 64, 3}, 22, 13, 2 * 16 + 16 + 4, 0x7);
  CHECK(spread == std::vector<std::uint32_t>{0x8000u, 0x8000u, 0x8000u, 0, 0, 0});
}

TEST_CASE("the first words of all lanes lie together, 16 bytes each, then a tail") {
  CHECK(keys::word_offset(6, 0, 3) == 12);
  CHECK(keys::word_offset(6, 1, 0) == 16);
  CHECK(keys::word_offset(6, 31, 3) == 508);
  CHECK(keys::word_offset(6, 0, 4) == 512);
  CHECK(keys::word_offset(6, 31, 5) == 764);
  CHECK(keys::word_offset(9, 3, 8) == 1024 + 12);
  CHECK(keys::word_offset(3, 2, 1) == 2 * 8 + 4);  // 8 bytes a lane, then 4
  CHECK(keys::word_offset(3, 2, 2) == 256 + 8);
}

TEST_CASE("runs of a fragment keep their neighbours") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for_each_shape([&](tile_shape s) {
    std::vector<std::byte> plane(static_cast<std::size_t>(keys::tile_bits(s) / 8), std::byte{0x5A});
    auto const before = plane;
    int const token = random.between(0, s.tokens - 1);
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(s.channels)), read = codes;
    for (auto& u : codes) u = static_cast<std::uint8_t>(random.bits() & ((1u << s.bits) - 1u));
    keys::store_run(plane.data(), s, token, 0, codes.data(), s.channels);
    keys::load_run(plane.data(), s, token, 0, read.data(), s.channels);
    REQUIRE(read == codes);
    std::vector<std::uint8_t> old(codes.size());
    keys::load_run(before.data(), s, token, 0, old.data(), s.channels);
    keys::store_run(plane.data(), s, token, 0, old.data(), s.channels);
    REQUIRE(plane == before);
  });
}

TEST_CASE("bits that no code owns become zeros") {
  for_each_shape([](tile_shape s) {
    std::vector<std::byte> plane(static_cast<std::size_t>(values::tile_bits(s) / 8),
                                 std::byte{0xFF});
    values::clear_unowned(plane.data(), s);
    std::vector<bool> owned(plane.size() * 8);
    for (int t = 0; t < s.tokens; ++t) {
      for (int c = 0; c < s.channels; ++c) {
        for (int k = 0; k < s.bits; ++k) {
          owned[static_cast<std::size_t>(values::bit_offset(s, t, c, k))] = true;
        }
      }
    }
    bool right = true;
    for (std::size_t i = 0; i < owned.size(); ++i) {
      bool const set = ((std::to_integer<unsigned>(plane[i / 8]) >> (i % 8)) & 1u) != 0;
      right = right && set == owned[i];
    }
    REQUIRE(right);
  });
}

template <class C, class P>
void require_same_rows(int head_dim, tile_options o) {
  random_source random(11);
  rows const x = normal_rows(random, 2, head_dim, 77);
  layout const plain = make_head_tiles<C>(2, head_dim, 77, o);
  layout const packed = make_head_tiles<C, P>(2, head_dim, 77, o);
  std::vector<std::byte> a(static_cast<std::size_t>(plain.size_bytes()));
  std::vector<std::byte> b(static_cast<std::size_t>(packed.size_bytes()), std::byte{0xFF});
  REQUIRE(encode(view<C, std::byte>{a.data(), plain, {}}, x.source(), {0, 77}).code == status::ok);
  REQUIRE(encode(view<C, std::byte, P>{b.data(), packed, {}}, x.source(), {0, 77}).code ==
          status::ok);
  rows ya(2, head_dim, 77), yb = ya;
  REQUIRE(decode(view<C, std::byte const>{a.data(), plain, {}}, ya.target(), {0, 77}) ==
          status::ok);
  REQUIRE(decode(view<C, std::byte const, P>{b.data(), packed, {}}, yb.target(), {0, 77}) ==
          status::ok);
  REQUIRE(ya.values == yb.values);
}

TEST_CASE("a fragment decodes as linear does") {
  for (int const head_dim : {64, 80, 96, 128}) {
    CAPTURE(head_dim);
    tile_options const o{.tile_tokens = 32, .group = 32};
    require_same_rows<row_codec<midrise<3>>, keys>(head_dim, o);
    require_same_rows<row_codec<int8_head>, values>(head_dim, {.tile_tokens = 16});
    require_same_rows<codec<symmetric<3, range::narrow>, axis::channel>, keys>(head_dim, o);
    require_same_rows<codec<hybrid<2, range::wide>, axis::token>, values>(head_dim, o);
    require_same_rows<codec<affine<1>, axis::token>, values>(head_dim, o);
    require_same_rows<row_codec<codebook<4, float>>, keys>(head_dim, o);
    require_same_rows<identity<half>, keys>(head_dim, o);
  }
}

TEST_CASE("shapes that are no whole fragments are refused by their number") {
  using C = row_codec<midrise<4>>;
  CHECK_THROWS_WITH((make_head_tiles<C, keys>(2, 72, 64)),
                    "fragment packing needs a head_dim of whole 16, not 72");
  CHECK_THROWS_WITH((make_head_tiles<C, keys>(2, 64, 64, {.tile_tokens = 8})),
                    "fragment packing needs tiles of whole 16 tokens, not 8");
  CHECK_THROWS_WITH((make_row_records<C, values>(2, 64, 64)),
                    "fragment packing needs tiles of whole 16 tokens, not 1");
}

}  // namespace
