// SPDX-License-Identifier: Apache-2.0
// What the device encodes: the host's bytes, for every codec, packing, head_dim and transform.
#include "kernels/codecs/coding_case.hpp"
#include "kernels/codecs/device_codec.hpp"

#include <support/catch.hpp>

namespace {

using namespace kvarts;
using namespace kvarts::test;

/// Memory that held something before.
std::vector<std::byte> used_memory(layout const& m) {
  return std::vector<std::byte>(static_cast<std::size_t>(m.size_bytes()), std::byte{0x5A});
}

/// Encodes all rows from a token on, on both sides; the bytes and the counts must be the same.
void compare(device_codec const& c, layout const& m, source_view const& source, std::int64_t begin,
             transform_view const& t) {
  token_range const tokens{begin, begin + source.map.tokens};
  auto expected = used_memory(m);
  auto const host = c.host_encode({expected.data(), m, {}}, source, tokens, t);
  REQUIRE(host.code == status::ok);

  auto bytes = used_memory(m);
  cuda::encode_counts counts;
  cuda::rows which{{.max_tokens = tokens.size()}, nullptr, begin};
  REQUIRE(c.encode({bytes.data(), m, {}}, source, which, t, &counts) == cudaSuccess);
  CHECK(bytes == expected);
  CHECK(counts.nonfinite == static_cast<unsigned long long>(host.nonfinite));
  CHECK(counts.refused == 0);
}

/// One head_dim of one codec; `n` counts through types, strides, transforms, lengths and groups.
void check_head_dim(device_codec const& c, int head_dim, int n, random_source& random) {
  constexpr int lengths[] = {33, 1, 70, 31, 5};
  constexpr int groups[] = {32, 16, 64, 24};
  int const heads = 1 + n % 3;
  int const group = c.info.grouped_along == axis::row ? 0 : groups[n / 2 % 4];
  int const tokens = lengths[n % 5];
  int const kind = n % transform_kinds;
  std::int64_t const begin = c.along_tokens() ? group * (n % 2) : n % 7;
  CAPTURE(c.name(), head_dim, heads, group, tokens, kind, begin);
  auto const r = awkward_rows(random, heads, head_dim, tokens, n % 2 == 0);
  auto const source = nth_tensor(r, n);
  auto const t = make_transform(random, kind, heads, head_dim);
  kernels::simt::scoped_schedule const schedule(nth_schedule(n));
  bool const records = n % 3 == 0 && c.row_records != nullptr;
  layout const m = records ? c.row_records(heads, head_dim, begin + tokens, 1 << (n % 8), group)
                           : c.head_tiles(heads, head_dim, begin + tokens, {0, group, 16 << n % 4});
  compare(c, m, source.source(), begin, t.view);
}

TEST_CASE("the device stores the host's bytes") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  int n = 0;
  for (device_codec const& c : device_codecs()) {
    for (int const head_dim : {64, 80, 96, 128, 192, 256, 46, 100}) {
      if (c.is_fragment() && head_dim % 16 != 0) continue;
      check_head_dim(c, head_dim, n++, random);
    }
  }
}

}  // namespace
