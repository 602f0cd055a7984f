// SPDX-License-Identifier: Apache-2.0
// Packings are bijections from (token, channel, code bit) to bits of a tile.
#include "support/catch.hpp"
#include "support/random.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

/// Bit k of all codes lies together, channel-major: the bits of a code lie far apart.
struct bit_planes {
  static constexpr std::int64_t tile_bits(tile_shape s) noexcept {
    return std::int64_t{s.tokens} * s.channels * s.bits;
  }
  static constexpr std::int64_t bit_offset(tile_shape s, int token, int channel, int bit) noexcept {
    return (std::int64_t{bit} * s.channels + channel) * s.tokens + token;
  }
};

/// Channels outermost, from the last to the first, behind 11 bits without an owner; 3 more at the
/// end.
struct transposed {
  static constexpr std::int64_t tile_bits(tile_shape s) noexcept {
    return std::int64_t{s.tokens} * s.channels * s.bits + 14;
  }
  static constexpr std::int64_t bit_offset(tile_shape s, int token, int channel, int bit) noexcept {
    return 11 + (std::int64_t{s.channels - 1 - channel} * s.tokens + token) * s.bits + bit;
  }
  static void clear_unowned(std::byte* plane, tile_shape s) noexcept {
    std::int64_t const size = tile_bits(s);
    for (std::int64_t const i : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) clear(plane, i);
    for (std::int64_t i = size - 3; i < size; ++i) clear(plane, i);
  }

 private:
  static void clear(std::byte* plane, std::int64_t at) noexcept {
    plane[at / 8] &= ~static_cast<std::byte>(1u << (at % 8));
  }
};

static_assert(packing<linear> && packing<bit_planes> && packing<transposed>);
static_assert(linear::tile_bits({1, 46, 3}) == 138);
static_assert(linear::bit_offset({1 << 20, 1024, 8}, (1 << 20) - 1, 1023, 7) == (8LL << 30) - 1);

std::vector<tile_shape> awkward_shapes() {
  std::vector<tile_shape> shapes;
  for (int bits : {1, 2, 3, 4, 8}) {
    for (int channels : {1, 3, 7, 8, 46, 100}) {
      for (int tokens : {1, 3, 33}) shapes.push_back({tokens, channels, bits});
    }
  }
  return shapes;
}

std::size_t bytes_of(std::int64_t bits) { return static_cast<std::size_t>((bits + 7) / 8); }

template <class P>
void require_bijection(tile_shape s) {
  CAPTURE(s.tokens, s.channels, s.bits);
  std::vector<int> owners(static_cast<std::size_t>(P::tile_bits(s)));
  for (int t = 0; t < s.tokens; ++t) {
    for (int c = 0; c < s.channels; ++c) {
      for (int k = 0; k < s.bits; ++k) {
        std::int64_t const at = P::bit_offset(s, t, c, k);
        REQUIRE(at >= 0);
        REQUIRE(at < P::tile_bits(s));
        REQUIRE(++owners[static_cast<std::size_t>(at)] == 1);
      }
    }
  }
}

unsigned bit_at(std::vector<std::byte> const& bytes, std::int64_t at) {
  return (std::to_integer<unsigned>(bytes[static_cast<std::size_t>(at / 8)]) >> (at % 8)) & 1u;
}

std::vector<std::uint8_t> random_codes(random_source& random, int bits, std::size_t count) {
  std::vector<std::uint8_t> codes(count);
  for (auto& u : codes) u = static_cast<std::uint8_t>(random.bits() & ((1u << bits) - 1u));
  return codes;
}

TEST_CASE("packings are bijections") {
  for (tile_shape const s : awkward_shapes()) {
    require_bijection<linear>(s);
    require_bijection<bit_planes>(s);
    require_bijection<transposed>(s);
  }
}

TEST_CASE("linear is a stream of codes, least significant bit first") {
  std::array<std::uint8_t, 8> const codes{1, 2, 3, 4, 5, 6, 7, 0};
  std::array<std::byte, 3> plane{};
  linear::store_run(plane.data(), {1, 8, 3}, 0, 0, codes.data(), 8);
  // 000 111 110 101 100 011 010 001, cut into bytes from the right
  CHECK(plane[0] == std::byte{0b11010001});
  CHECK(plane[1] == std::byte{0b01011000});
  CHECK(plane[2] == std::byte{0b00011111});
}

TEST_CASE("runs of linear lie where bit_offset says, and keep their neighbours") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (tile_shape const s : awkward_shapes()) {
    CAPTURE(s.tokens, s.channels, s.bits);
    for (unsigned const before : {0x00u, 0xFFu, 0x5Au}) {
      int const token = random.between(0, s.tokens - 1);
      int const channel = random.between(0, s.channels - 1);
      int const count = random.between(0, s.channels - channel);
      auto const codes = random_codes(random, s.bits, static_cast<std::size_t>(count));
      // Exactly the plane's bytes: the sanitizer sees a run that touches more.
      std::vector<std::byte> plane(bytes_of(linear::tile_bits(s)), static_cast<std::byte>(before));
      linear::store_run(plane.data(), s, token, channel, codes.data(), count);

      std::vector<int> expected(plane.size() * 8);
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = (before >> (i % 8)) & 1u;
      for (int i = 0; i < count; ++i) {
        for (int k = 0; k < s.bits; ++k) {
          expected[static_cast<std::size_t>(linear::bit_offset(s, token, channel + i, k))] =
              (codes[static_cast<std::size_t>(i)] >> k) & 1;
        }
      }
      for (std::size_t i = 0; i < expected.size(); ++i) {
        REQUIRE(static_cast<int>(bit_at(plane, static_cast<std::int64_t>(i))) == expected[i]);
      }

      std::vector<std::uint8_t> read(codes.size());
      linear::load_run(plane.data(), s, token, channel, read.data(), count);
      REQUIRE(read == codes);
    }
  }
}

template <class C, class P>
std::vector<std::byte> encode_with(rows const& x, layout const& m) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()), std::byte{0xFF});
  view<C, std::byte, P> const v{bytes.data(), m, {}};
  REQUIRE(encode(v, x.source(), {0, x.tokens}).code == status::ok);
  return bytes;
}

/// Decodes the same in any packing, and bit by bit from where the packing says the bits are.
template <class C, class P>
void require_same_codes(rows const& x, tile_options o) {
  layout const plain = make_head_tiles<C>(x.heads, x.head_dim, x.tokens, o);
  layout const packed = make_head_tiles<C, P>(x.heads, x.head_dim, x.tokens, o);
  auto const a = encode_with<C, linear>(x, plain);
  auto const b = encode_with<C, P>(x, packed);
  view<C, std::byte const> const va{a.data(), plain, {}};
  view<C, std::byte const, P> const vb{b.data(), packed, {}};
  rows ya(x.heads, x.head_dim, x.tokens), yb = ya;
  REQUIRE(decode(va, ya.target(), {0, x.tokens}) == status::ok);
  REQUIRE(decode(vb, yb.target(), {0, x.tokens}) == status::ok);
  REQUIRE(ya.values == yb.values);

  std::vector<std::uint8_t> codes(static_cast<std::size_t>(x.head_dim));
  for (std::int64_t t = 0; t < x.tokens; ++t) {
    load_codes(va, 1, t, codes.data());
    auto const tile = vb.tile(1, t);
    std::int64_t const begin = (tile.codes - b.data()) * 8;
    for (int d = 0; d < x.head_dim; ++d) {
      unsigned u = 0;
      for (int k = 0; k < C::bits; ++k) {
        u |= bit_at(b, begin + P::bit_offset(vb.shape(), tile.slot, d, k)) << k;
      }
      REQUIRE((u ^ C::quantizer_type::stored_mask) == codes[static_cast<std::size_t>(d)]);
    }
  }
}

TEST_CASE("codes whose bits lie apart decode alike") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  rows const x = normal_rows(random, 2, 46, 64);
  using by_channel = codec<symmetric<3, range::narrow>, axis::channel>;
  using by_token = codec<hybrid<2, range::wide>, axis::token>;
  tile_options const o{.tile_tokens = 32, .group = 16, .alignment = 1};
  require_same_codes<by_channel, bit_planes>(x, o);
  require_same_codes<by_channel, transposed>(x, o);
  require_same_codes<by_token, bit_planes>(x, o);
  require_same_codes<by_token, transposed>(x, o);
  require_same_codes<row_codec<midrise<3>>, bit_planes>(x, o);
  require_same_codes<row_codec<int8_head>, transposed>(x, o);
}

/// Encodes `tokens` tokens into tiles of 3 and looks at every bit without an owner.
template <class C, class P>
void require_unowned_zeros(int head_dim, std::int64_t tokens) {
  CAPTURE(std::string(std::string_view(C::name())), head_dim, tokens);
  rows const x(1, head_dim, tokens, 1.0f);
  tile_options const o{.tile_tokens = 3, .group = 3, .alignment = 1};
  layout const m = make_head_tiles<C, P>(1, head_dim, tokens, o);
  auto const bytes = encode_with<C, P>(x, m);
  tile_shape const s{3, head_dim, C::bits};
  for (std::int64_t tile = 0; tile < m.tiles(); ++tile) {
    std::vector<bool> owned(static_cast<std::size_t>(m.codes.bytes * 8));
    for (int i = 0; i < 3 * head_dim * C::bits; ++i) {
      int const code = i / C::bits;
      owned[static_cast<std::size_t>(
          P::bit_offset(s, code / head_dim, code % head_dim, i % C::bits))] = true;
    }
    for (std::size_t i = 0; i < owned.size(); ++i) {
      auto const at = m.codes.at(0, tile, 0) * 8 + static_cast<std::int64_t>(i);
      REQUIRE((owned[i] || bit_at(bytes, at) == 0));
    }
  }
}

TEST_CASE("bits that no code owns are zeros, also in a tile that is not full") {
  using by_token = codec<affine<2>, axis::token>;
  for (std::int64_t const tokens : {1, 3, 5, 6}) {
    for (int const head_dim : {1, 9, 46}) {
      require_unowned_zeros<row_codec<midrise<3>>, linear>(head_dim, tokens);
      require_unowned_zeros<row_codec<midrise<3>>, bit_planes>(head_dim, tokens);
      require_unowned_zeros<row_codec<midrise<3>>, transposed>(head_dim, tokens);
      require_unowned_zeros<by_token, linear>(head_dim, tokens);
      require_unowned_zeros<by_token, transposed>(head_dim, tokens);
    }
  }
}

}  // namespace
