// SPDX-License-Identifier: Apache-2.0
// Codes that change their packing: what the host encodes in one becomes what it encodes in the
// other, and back.
#include "kernels/codecs/coding_case.hpp"

#include <kvarts/codec_list.hpp>
#include <kvarts/encode.hpp>
#include <kvarts/kernels/repack.cuh>
#include <kvarts/make_layout.hpp>

#include <numeric>
#include <string>
#include <support/catch.hpp>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

/// Coded memory with a block table of its own.
template <class Codec, class Packing>
struct coded_memory {
  layout map;
  std::vector<std::int32_t> pages;
  std::vector<std::byte> bytes;

  explicit coded_memory(layout const& m, random_source& random)
      : map(m),
        pages(static_cast<std::size_t>(m.page_tokens > 0 ? m.pages() : 0)),
        bytes(static_cast<std::size_t>(m.size_bytes()), std::byte{0x5A}) {
    std::iota(pages.begin(), pages.end(), 0);
    for (std::size_t i = pages.size(); i > 1; --i) {
      auto const k = static_cast<std::size_t>(random.between(0, static_cast<int>(i) - 1));
      std::swap(pages[i - 1], pages[k]);
    }
  }

  block_table table() const {
    return {pages.empty() ? nullptr : pages.data(), static_cast<std::int64_t>(pages.size())};
  }
  view<Codec, std::byte, Packing> codes() { return {bytes.data(), map, table()}; }
  void fill(rows const& r, token_range tokens) {
    rows part(r.heads, r.head_dim, tokens.size());
    std::copy_n(r.values.begin() + static_cast<std::ptrdiff_t>(r.index(tokens.begin, 0, 0)),
                part.values.size(), part.values.begin());
    REQUIRE(encode(codes(), part.source(), tokens).code == status::ok);
  }
  /// As a launch takes it: one sequence.
  cuda::batch where(std::int64_t const* begin, std::int64_t const* end) const {
    cuda::batch b;
    b.max_tokens = map.tokens;
    b.begins = begin;
    b.ends = end;
    b.block_tables = table().pages;
    b.table_stride = table().count;
    return b;
  }
};

/// Part of the tokens goes from one memory to another that already holds other rows: it must then
/// hold what the host encodes there.
template <class Codec, class From, class To>
void move_part(layout const& from, layout const& to, token_range part, random_source& random) {
  std::int64_t const tokens = std::min(from.tokens, to.tokens);
  rows const old_rows = normal_rows(random, from.heads, from.head_dim, tokens);
  rows const new_rows = normal_rows(random, from.heads, from.head_dim, tokens);
  coded_memory<Codec, From> source(from, random);
  source.fill(new_rows, {0, tokens});
  coded_memory<Codec, To> target(to, random);
  target.fill(old_rows, {0, tokens});
  auto expected = target;
  expected.fill(new_rows, part);

  std::int64_t const begin = part.begin, end = part.end;
  REQUIRE(cuda::repack<Codec, From, To>(source.codes(), source.where(&begin, &end), target.codes(),
                                        target.where(nullptr, nullptr), nullptr) == cudaSuccess);
  CHECK(target.bytes == expected.bytes);
}

/// Both ways between a stream of bits and fragments, tiles and pages, at one head_dim.
template <class Codec, operand Operand>
void check_codec(int n, random_source& random) {
  using packed = fragment<Operand>;
  constexpr int dims[] = {64, 80, 96, 128, 192, 256};
  constexpr bool along_tokens = Codec::grouped_along == axis::token;
  int const head_dim = dims[n % 6];
  int const group = Codec::grouped_along == axis::row ? 0 : (n % 2 == 0 ? 16 : 32);
  int const heads = 1 + n % 2;
  std::int64_t const begin = along_tokens ? group : 5;
  token_range const part{begin, along_tokens ? 96 : 71};
  CAPTURE(std::string(std::string_view(Codec::name())), to_string(Codec::grouped_along), head_dim,
          group);
  kernels::simt::scoped_schedule const schedule(nth_schedule(n));
  layout const tiles = make_pages<Codec, packed>(heads, head_dim, 3, 32, {0, group, 16});
  layout stream = make_head_tiles<Codec>(heads, head_dim, 96, {0, group, 16});
  if constexpr (!along_tokens) {
    if (n % 3 != 0) stream = make_row_records<Codec>(heads, head_dim, 96, 4, group);
  }
  move_part<Codec, linear, packed>(stream, tiles, part, random);
  move_part<Codec, packed, linear>(tiles, stream, part, random);
}

template <axis Along, operand Operand, class... Quantizers>
void check_codecs(int n, random_source& random, type_list<Quantizers...>) {
  (check_codec<codec<Quantizers, Along>, Operand>(n++, random), ...);
}

TEST_CASE("codes move between packings") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  using rows_list = type_list<int8_head, midrise<2>, midrise<3>, midrise<4>, codebook<4, float>>;
  using groups = type_list<affine<1>, affine<2>, affine<3>, affine<4>, symmetric<8, range::wide>,
                           hybrid<3, range::narrow>>;
  check_codecs<axis::row, operand::keys>(0, random, rows_list{});
  check_codecs<axis::row, operand::values>(2, random, type_list<midrise<3>>{});
  check_codecs<axis::channel, operand::keys>(1, random, groups{});
  check_codecs<axis::token, operand::values>(3, random, groups{});
}

TEST_CASE("16-bit rows move between layouts") {
  random_source random(test_seed());
  using codec = identity<bfloat16>;
  layout const pages = make_pages<codec>(2, 80, 4, 16, {16, 0, 16});
  layout const tiles = make_head_tiles<codec>(2, 80, 64);
  move_part<codec, linear, linear>(pages, tiles, {3, 60}, random);
  move_part<codec, linear, linear>(tiles, pages, {3, 60}, random);
}

TEST_CASE("a repack between groups of two lengths is refused") {
  using codec = kvarts::codec<affine<2>, axis::channel>;
  layout const a = make_head_tiles<codec>(2, 64, 32, {32, 32});
  layout const b = make_head_tiles<codec>(2, 64, 32, {32, 16});
  view<codec, std::byte const> const from{nullptr, a, {}};
  view<codec> const to{nullptr, b, {}};
  auto const why = cuda::explain_repack<codec, linear, linear>(from, {}, to, {});
  CHECK(why.sentence() == "one side has groups of 32, the other of 16");
  CHECK(cuda::repack<codec, linear, linear>(from, {}, to, {}, nullptr) == cudaErrorInvalidValue);
}

}  // namespace
