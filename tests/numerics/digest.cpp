// SPDX-License-Identifier: Apache-2.0
/// @file
/// Prints a checksum per codec of all bytes that it stores, and of what they decode to, for fixed
/// inputs. Built with several compilers and flags, every build must print the same lines.
///
/// A fused multiply-add in an error changes few searched scales, so the searched codecs and the
/// mid-rise rows see many groups, of a kind whose candidates nearly tie: about one scale in 5,000
/// (2 bits) to 130 (8 bits) would change. No input comes from a sum of products, which a build
/// could round differently.
#include <kvarts/codec_list.hpp>
#include <kvarts/crc32c.hpp>
#include <kvarts/decode.hpp>
#include <kvarts/encode.hpp>
#include <kvarts/make_layout.hpp>
#include <kvarts/tensor.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace {

using namespace kvarts;

std::uint64_t random_bits() {
  static std::uint64_t counter = 0;
  return detail::mix64(++counter * 0x9E3779B97F4A7C15u);
}

/// Bell-shaped, standard deviation about 1, with all the bits that a float has.
float bell() {
  std::int32_t sum = 0;
  for (int i = 0; i < 2; ++i) {
    std::uint64_t const bits = random_bits();
    sum += static_cast<std::int32_t>(bits >> 42) - static_cast<std::int32_t>(bits & 0x3FFFFFu);
  }
  return static_cast<float>(sum) * 0x1.BCp-22f;
}

/// Channel d of token t: the first tokens of every 32 are constant or have odd numbers among them,
/// the others are bell-shaped, some with outliers, some of sizes from 2^-32 to 2^24.
float number_at(int t, int d) {
  using limits = std::numeric_limits<float>;
  constexpr std::array constants{0.0f, -0.0f, 100.0f, -65504.0f, 1e-40f, 0x1p-24f, 3e38f};
  constexpr std::array oddities{
      limits::infinity(), -limits::infinity(), limits::quiet_NaN(), 1e-38f, 70000.0f, -1e5f};
  auto const kind = static_cast<std::size_t>(t % 32);
  bool const odd = random_bits() % 29 == 0;
  float const x = bell();
  if (kind < constants.size()) return constants[kind];
  if (kind < constants.size() + oddities.size()) return odd ? oddities[kind - constants.size()] : x;
  if (kind == 13) return 600.0f + 0.5f * static_cast<float>(d % 2);
  if (kind >= 24) return std::ldexp(x, 8 * (t % 32 - 28));
  return odd ? 64.0f * x : x;
}

/// Rows `[tokens, heads, head_dim]`, `width` = heads * head_dim.
std::vector<float> make_rows(int width, int tokens) {
  std::vector<float> rows;
  for (int t = 0; t < tokens; ++t) {
    for (int d = 0; d < width; ++d) rows.push_back(number_at(t, d));
  }
  return rows;
}

/// The same numbers in a 16-bit type (float stays).
template <class T>
std::vector<T> as(std::vector<float> const& rows) {
  std::vector<T> out;
  for (float const x : rows) out.push_back(T(x));
  return out;
}

struct geometry {
  int heads, head_dim, group, tokens;
};

template <class T>
std::uint32_t checksum(std::vector<T> const& values, std::uint32_t before) {
  return crc32c(std::as_bytes(std::span(values)), before);
}

/// Encodes and decodes one tensor; continues a checksum over both.
template <class Codec>
std::uint32_t digest_layout(layout const& m, source_view const& source, transform_view const& t,
                            std::uint32_t crc) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()), std::byte{0x5A});
  view<Codec> const v{bytes.data(), m, {}};
  token_range const all{0, source.map.tokens};
  auto const result = encode(v, source, all, t);
  std::vector<float> back(static_cast<std::size_t>(all.end * m.heads * m.head_dim));
  auto const decoded = decode(v, make_tensor(back.data(), m.heads, m.head_dim, all.end), all, t);
  if (result.code != status::ok || decoded != status::ok) {
    std::puts("a codec refused its input");
    std::exit(1);
  }
  return checksum(back, checksum(bytes, crc + static_cast<std::uint32_t>(result.nonfinite)));
}

template <class Codec>
std::uint32_t digest_source(geometry const& g, source_view const& source, std::uint32_t crc) {
  std::vector<float> center, norm;
  for (int i = 0; i < g.heads * g.head_dim; ++i) {
    center.push_back(8.0f * bell());
    norm.push_back(static_cast<float>(1 + random_bits() % 1000) * 0x1p-8f);
  }
  transform_view const transforms[] = {{},
                                       {nullptr, nullptr, 0, {1, 1}},
                                       {nullptr, norm.data(), g.head_dim, {}},
                                       {center.data(), norm.data(), g.head_dim, {1, 1}}};
  for (transform_view const& t : transforms) {
    crc = digest_layout<Codec>(
        make_head_tiles<Codec>(g.heads, g.head_dim, g.tokens, {0, g.group, 16}), source, t, crc);
    if constexpr (Codec::grouped_along != axis::token) {
      crc = digest_layout<Codec>(make_row_records<Codec>(g.heads, g.head_dim, g.tokens, 1, g.group),
                                 source, t, crc);
    }
  }
  return crc;
}

template <class Codec>
std::uint32_t digest_geometries() {
  std::uint32_t crc = 0;
  for (auto const& g : {geometry{1, 128, 32, 64}, geometry{2, 64, 16, 37}, geometry{1, 80, 32, 33},
                        geometry{3, 46, 17, 65}, geometry{1, 100, 128, 131}}) {
    auto const rows = make_rows(g.heads * g.head_dim, g.tokens);
    auto const halves = as<half>(rows);
    auto const brains = as<bfloat16>(rows);
    crc = digest_source<Codec>(g, make_tensor(rows.data(), g.heads, g.head_dim, g.tokens), crc);
    crc = digest_source<Codec>(g, make_tensor(halves.data(), g.heads, g.head_dim, g.tokens), crc);
    crc = digest_source<Codec>(g, make_tensor(brains.data(), g.heads, g.head_dim, g.tokens), crc);
  }
  return crc;
}

/// Many groups (or rotated rows) of 32 numbers within +-2. Cut at 2, a group often has its largest
/// magnitude with both signs, so that candidates tie but for the rounding of their errors.
template <class Codec>
std::uint32_t digest_many(int pieces, rotation const& rotate) {
  constexpr int head_dim = 32, tokens = 2048;
  std::uint32_t crc = 0;
  for (int i = 0; i < pieces; ++i) {
    std::vector<float> rows;
    for (int k = 0; k < tokens * head_dim; ++k) rows.push_back(std::clamp(bell(), -2.0f, 2.0f));
    crc = digest_layout<Codec>(make_head_tiles<Codec>(1, head_dim, tokens, {0, 32, 128}),
                               make_tensor(rows.data(), 1, head_dim, tokens),
                               {nullptr, nullptr, 0, rotate}, crc);
  }
  return crc;
}

void print(std::string_view name, std::string_view what, std::uint32_t crc) {
  std::printf("%.*s %.*s %08x\n", static_cast<int>(name.size()), name.data(),
              static_cast<int>(what.size()), what.data(), static_cast<unsigned>(crc));
}

template <int Bits>
void print_many() {
  using searched = codec<symmetric<Bits, range::searched>, axis::channel>;
  using rows = row_codec<midrise<Bits>>;
  print(searched::name(), "many groups", digest_many<searched>(50, {}));  // 102,400
  print(rows::name(), "many rotated rows", digest_many<rows>(50, {1, 1}));
}

}  // namespace

int main() {
  if (!numerics_ok()) std::puts("numerics_ok() is false");
  for_each_codec([](auto tag) {
    using codec = typename decltype(tag)::type;
    print(codec::name(), to_string(codec::grouped_along), digest_geometries<codec>());
  });
  print_many<2>();
  print_many<3>();
  print_many<4>();
  print_many<8>();
}
