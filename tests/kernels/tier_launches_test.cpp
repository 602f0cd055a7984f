// SPDX-License-Identifier: Apache-2.0
// What the tier asks of CUDA's kernels: pages of lists and pages of staging, gathered and
// scattered, get the bytes of the host's `encode` and `decode`.
#include "support/catch.hpp"
#include "support/device_pool.hpp"
#include "support/index_lists.hpp"
#include "support/page_coders.hpp"

#include <kvarts/kernels/decode.cuh>
#include <kvarts/kernels/encode.cuh>
#include <kvarts/kernels/upload.cuh>
#include <kvarts/tier/cuda_coders.hpp>
#include <kvarts/tier/placement.hpp>

#include <cstdint>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using namespace kvarts::test;

using rows8 = row_codec<midrise<8>>;
using int8_rows = row_codec<int8_head>;
using by_token = codec<symmetric<3, range::narrow>, axis::token, 8>;
using plain = identity<bfloat16>;

constexpr int pages = 6;

std::vector<std::int32_t> narrow(std::vector<std::int64_t> const& from) {
  return {from.begin(), from.end()};
}

/// One layer of a tier in pages of 8 tokens, or 1, and a pool; through lists or as they come.
template <class C>
void check_launches(host_layout how, int page_tokens, pool_shape const& shape, bool listed,
                    random_source& random) {
  geometry g = uniform_geometry(3, 3, segment_of<C>(46), {});
  g.page_tokens = page_tokens;
  g.record = page_tokens == 1 ? record_kind::row : record_kind::page;
  g.placement = how;
  g.alignment = 16;
  layout const map = make_layout(g, side::keys, 1, pages);
  std::vector<std::byte> expected(static_cast<std::size_t>(size_bytes(g, side::keys, pages)),
                                  std::byte{0xA5});
  std::vector<std::byte> found = expected;
  device_pool pool(shape, 3, 46, 8 * page_tokens);
  pool.fill(random);
  auto const coded = narrow(index_lists::different(random, pages, 4));
  auto const from = narrow(index_lists::different(random, 8, 4));
  auto const to = narrow(index_lists::different(random, 8, 4));
  transform_view const t{nullptr, nullptr, 0, {C::plain ? 0 : 1, 1}};
  cuda_coder const coder = cuda_coder_of<C>();

  encode_launch out{info_of<C>(),  found.data(), map, listed ? coded.data() : nullptr,
                    pool.source(), from.data(),  4,   t};
  REQUIRE(coder.explain_encode(out).sentence() == "");
  REQUIRE(coder.encode(out, nullptr) == cudaSuccess);
  out.coded = expected.data();
  for (int i = 0; i < 4; ++i) run_page(out, i);
  CHECK(found == expected);

  device_pool back = pool, expected_back = pool;
  decode_launch in{info_of<C>(),  found.data(), map, listed ? coded.data() : nullptr,
                   back.target(), to.data(),    4,   t};
  REQUIRE(coder.explain_decode(in).sentence() == "");
  REQUIRE(coder.decode(in, nullptr) == cudaSuccess);
  in.plain = expected_back.target();
  for (int i = 0; i < 4; ++i) run_page(in, i);
  CHECK(back.bytes == expected_back.bytes);
}

TEMPLATE_TEST_CASE("launches of pages give the host's bytes", "", rows8, int8_rows, by_token,
                   plain) {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (host_layout const how : host_layouts) {
    for (bool const listed : {false, true}) {
      for (int const tokens : {8, 1}) {
        if (tokens == 1 && TestType::grouped_along == axis::token) continue;
        CAPTURE(to_string(how), listed, tokens);
        for (dtype const type : {dtype::bf16, dtype::f32}) {
          check_launches<TestType>(how, tokens, {"", type, tokens, order::token_major, 2}, listed,
                                   random);
          check_launches<TestType>(how, tokens, {"", type, tokens, order::head_major, 0}, listed,
                                   random);
        }
      }
    }
  }
}

TEST_CASE("lists travel with launches, however long") {
  for (int const count : {0, 1, 127, 512, 513, 1500}) {
    std::vector<std::int32_t> from(static_cast<std::size_t>(count)), to(from.size() + 1, -7);
    for (int i = 0; i < count; ++i) from[static_cast<std::size_t>(i)] = i * i - 5;
    REQUIRE(cuda::upload(to.data(), from.data(), count, nullptr) == cudaSuccess);
    CHECK(to.back() == -7);
    to.pop_back();
    CHECK(to == from);
  }
}

}  // namespace
