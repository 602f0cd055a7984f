// SPDX-License-Identifier: Apache-2.0
// Codecs and packings of a user on the device, and what launches refuse.
#include "kernels/codecs/coding_case.hpp"

#include <kvarts/decode.hpp>
#include <kvarts/kernels/decode.cuh>
#include <kvarts/kernels/encode.cuh>
#include <kvarts/make_layout.hpp>
#include <kvarts/quantizer.hpp>

#include <cstring>
#include <string>
#include <support/catch.hpp>
#include <support/simt/for_each_schedule.hpp>
#include <utility>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

/// Bit planes: no code has a byte of its own, and only a tile has one.
struct bit_planes {
  static constexpr std::int64_t tile_bits(tile_shape s) {
    return std::int64_t{s.bits} * s.tokens * s.channels;
  }
  static constexpr std::int64_t bit_offset(tile_shape s, int token, int channel, int bit) {
    return (std::int64_t{bit} * s.tokens + token) * s.channels + channel;
  }
};

/// The sign and the mean magnitude of a group.
struct sign {
  using parameters_type = parameters<half>;
  static constexpr int bits = 1;
  static constexpr bool has_zero = false;
  static constexpr bool clamps_rows = false;
  static constexpr std::uint8_t stored_mask = 0;

  static constexpr std::string_view name() { return "sign"; }
  static parameters_type quantize(float const* x, int n, std::uint8_t* codes) {
    return quantize_array<sign>(x, n, codes);
  }
  template <class Group>
  KVARTS_HOST_DEVICE static parameters_type quantize(Group& group) {
    group.store([](float x) { return x < 0.0f ? 0 : 1; });
    float const sum = group.fold([](float x) { return x < 0.0f ? -x : x; });
    return {saturate<half>(detail::divide(sum, static_cast<float>(group.size()))), {}};
  }
  static constexpr decoding decode_with(parameters_type const& p) { return {p.scale, 0.0f}; }
  static constexpr float level(std::uint8_t u, parameters_type const&, int) {
    return u == 0 ? -1.0f : 1.0f;
  }
};

/// Tokens 32.. of a layout for 70, both ways, in one schedule.
template <class Codec, class Packing>
void check_own(layout const& m, random_source& random) {
  auto const r = awkward_rows(random, m.heads, m.head_dim, 37, true);
  auto const t = make_transform(random, 4, m.heads, m.head_dim);
  std::vector<std::byte> expected(static_cast<std::size_t>(m.size_bytes()), std::byte{0x5A});
  auto bytes = expected;
  using coded = view<Codec, std::byte, Packing>;
  token_range const tokens{32, 69};
  cuda::rows const which{{.max_tokens = tokens.size()}, nullptr, tokens.begin};
  REQUIRE(encode(coded{expected.data(), m, {}}, r.source(), tokens, t.view).code == status::ok);
  REQUIRE(cuda::encode(coded{bytes.data(), m, {}}, r.source(), which, t.view, nullptr, nullptr) ==
          cudaSuccess);
  CHECK(bytes == expected);

  rows host(m.heads, m.head_dim, tokens.size());
  rows device = host;
  view<Codec, std::byte const, Packing> const reader{bytes.data(), m, {}};
  REQUIRE(decode(reader, host.target(), tokens, t.view) == status::ok);
  REQUIRE(cuda::decode(reader, device.target(), which, t.view, nullptr) == cudaSuccess);
  CHECK(std::memcmp(device.values.data(), host.values.data(), 4 * host.values.size()) == 0);
}

TEST_CASE("the device takes a user's codec and a user's packing") {
  auto const seed = test_seed();
  CAPTURE(seed);
  kernels::simt::for_each_schedule([seed](auto const&) {
    random_source random(seed);
    using row = row_codec<midrise<3>>;
    using by_token = codec<affine<2>, axis::token>;
    using own = codec<sign, axis::channel>;
    check_own<row, bit_planes>(make_head_tiles<row, bit_planes>(2, 46, 99, {33, 0, 4}), random);
    check_own<by_token, bit_planes>(make_head_tiles<by_token, bit_planes>(2, 64, 96, {32, 16}),
                                    random);
    check_own<own, linear>(make_head_tiles<own>(2, 100, 96, {32, 24, 1}), random);
    check_own<own, fragment<operand::keys>>(
        make_head_tiles<own, fragment<operand::keys>>(1, 80, 96, {32, 40}), random);
  });
}

using int8_codec = row_codec<int8_head>;

struct launch_parts {
  view<int8_codec> dst;
  source_view src;
  cuda::rows which;
  transform_view transform;
};

std::string why_not(launch_parts const& p) {
  return cuda::explain_encode(p.dst, p.src, p.which, p.transform).sentence();
}
cudaError_t launch(launch_parts const& p) {
  return cuda::encode(p.dst, p.src, p.which, p.transform, nullptr, nullptr);
}

launch_parts fair_parts(std::vector<half>& plain, std::vector<std::byte>& bytes, int head_dim) {
  plain.resize(static_cast<std::size_t>(4 * head_dim));
  layout const m = make_head_tiles<int8_codec>(2, head_dim, 32);
  bytes.resize(static_cast<std::size_t>(m.size_bytes()));
  return {{bytes.data(), m, {}},
          make_tensor(std::as_const(plain).data(), 2, head_dim, 2),
          {{.max_tokens = 2}, nullptr, 0},
          {}};
}

TEST_CASE("a warp takes several rows when there are very many") {
  random_source random(test_seed());
  auto const r = normal_rows(random, 1, 16, 9000);
  layout const m = make_row_records<int8_codec>(1, 16, 9000, 2);
  std::vector<std::byte> expected(static_cast<std::size_t>(m.size_bytes()));
  auto bytes = expected;
  auto const t = make_transform(random, 4, 1, 16);
  using coded = view<int8_codec>;
  REQUIRE(encode(coded{expected.data(), m, {}}, r.source(), {0, 9000}, t.view).code == status::ok);
  REQUIRE(cuda::encode(coded{bytes.data(), m, {}}, r.source(), {{.max_tokens = 9000}, nullptr, 0},
                       t.view, nullptr, nullptr) == cudaSuccess);
  CHECK(bytes == expected);
}

TEST_CASE("launches refuse what they do not serve, in one sentence") {
  std::vector<half> plain;
  std::vector<std::byte> bytes;
  CHECK(launch(fair_parts(plain, bytes, 128)) == cudaSuccess);

  auto p = fair_parts(plain, bytes, 320);
  CHECK(why_not(p) == "kernels serve a head_dim of up to 256, not 320");
  CHECK(launch(p) == cudaErrorNotSupported);

  p = fair_parts(plain, bytes, 128);
  p.src.data += 1;
  CHECK(launch(p) == cudaErrorNotSupported);
  CHECK(why_not(p).find("kernels load 2 bytes at once") == 0);

  p = fair_parts(plain, bytes, 128);
  p.src.map.head_dim = 64;
  p.src.map.codes.bytes = 128;
  CHECK(why_not(p) == "plain rows have head_dim 64 where codes have 128");
  CHECK(launch(p) == cudaErrorInvalidValue);

  p = fair_parts(plain, bytes, 128);
  p.transform.rotate.rounds = 5;
  CHECK(why_not(p) == "a rotation has 0 to 4 rounds, not 5");

  p = fair_parts(plain, bytes, 128);
  p.which.begin = -3;
  CHECK(why_not(p) == "the first token is -3, below 0");

  p = fair_parts(plain, bytes, 128);
  p.dst.map.page_tokens = 32;
  CHECK(why_not(p) == "a layout with pages of 32 tokens needs a block table, others none");

  p = fair_parts(plain, bytes, 128);
  p.dst.map.codes.bytes -= 1;
  CHECK(launch(p) == cudaErrorInvalidValue);
}

TEST_CASE("tiles that no warp can hold are refused") {
  using codec = row_codec<midrise<3>>;
  layout const m = make_head_tiles<codec, bit_planes>(1, 128, 1024, {1024});
  std::vector<half> const plain(128);
  auto const source = make_tensor(plain.data(), 1, 128, 1);
  view<codec, std::byte, bit_planes> const dst{nullptr, m, {}};
  CHECK(cuda::explain_append(dst, source).sentence() ==
        "1024 tokens of head_dim 128 that share bytes or groups are too many");
  CHECK(cuda::append(dst, source, nullptr, {}, nullptr, nullptr) == cudaErrorNotSupported);
}

}  // namespace
