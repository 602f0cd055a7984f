// SPDX-License-Identifier: Apache-2.0
// Ragged batches in pages, on the device and on the host: the same codes, the same rows back.
#include "kernels/codecs/coding_case.hpp"
#include "kernels/codecs/device_codec.hpp"
#include "kernels/codecs/paged_batch.hpp"

#include <support/catch.hpp>

namespace {

using namespace kvarts;
using namespace kvarts::test;

/// Positions that a group of tokens allows.
std::vector<std::int64_t> first_tokens(device_codec const& c, int group) {
  std::vector<std::int64_t> first{0, 3, 64, 31, 1, 90, 0};
  for (std::int64_t& t : first) t = c.along_tokens() ? t / group * group : t;
  return first;
}

/// What a batch is encoded with.
struct batch_case {
  device_codec const& codec;
  layout map;
  paged_batch batch;
  plain_memory plain;
  owned_transform transform;
};

/// `n` counts through page sizes, types and transforms.
batch_case make_case(device_codec const& c, int n, random_source& random) {
  constexpr int pages[] = {32, 64, 16, 128};
  constexpr int dims[] = {64, 80, 128, 96};
  int const head_dim = dims[n % 4];
  int const page = pages[n / 3 % 4];
  int const group = c.info.grouped_along == axis::row ? 0 : 16;
  int const heads = 1 + n % 2;
  paged_batch batch(random, page, {0, 5, 0, 1, 33, 40, 0}, first_tokens(c, 16));
  layout const m = c.pages(heads, head_dim, batch.pages, page, {0, group, 32});
  auto const r = awkward_rows(random, heads, head_dim, batch.rows(), true);
  return {c, m, std::move(batch), nth_tensor(r, n),
          make_transform(random, n % transform_kinds, heads, head_dim)};
}

/// The pool as the host fills it, and how many inputs were not finite.
std::vector<std::byte> encode_on_host(batch_case const& b, std::int64_t& nonfinite) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(b.map.size_bytes()), std::byte{0x5A});
  for (int i = 0; i < b.batch.sequences(); ++i) {
    auto const done = b.codec.host_encode({bytes.data(), b.map, b.batch.table(i)},
                                          rows_of(b.plain.source(), b.batch, i), b.batch.range(i),
                                          b.transform.view);
    REQUIRE(done.code == status::ok);
    nonfinite += done.nonfinite;
  }
  return bytes;
}

void check_encode(batch_case const& b, std::vector<std::byte> const& expected,
                  std::int64_t nonfinite) {
  std::vector<std::byte> bytes(expected.size(), std::byte{0x5A});
  cuda::encode_counts counts;
  REQUIRE(b.codec.encode({bytes.data(), b.map, {}}, b.plain.source(), b.batch.device(),
                         b.transform.view, &counts) == cudaSuccess);
  CHECK(bytes == expected);
  CHECK(counts.nonfinite == static_cast<unsigned long long>(nonfinite));
  CHECK(counts.refused == 0);
}

/// Model space and coded space, to the type of the input.
void check_decode(batch_case const& b, std::vector<std::byte> const& coded_bytes, bool to_model) {
  auto const t = to_model ? b.transform.view : transform_view{};
  plain_memory expected = b.plain;
  std::fill(expected.bytes.begin(), expected.bytes.end(), std::byte{0x33});
  plain_memory back = expected;
  for (int i = 0; i < b.batch.sequences(); ++i) {
    REQUIRE(b.codec.host_decode({coded_bytes.data(), b.map, b.batch.table(i)},
                                rows_of(expected.target(), b.batch, i), b.batch.range(i),
                                t) == status::ok);
  }
  REQUIRE(b.codec.decode({coded_bytes.data(), b.map, {}}, back.target(), b.batch.device(), t) ==
          cudaSuccess);
  CHECK(back.bytes == expected.bytes);
}

TEST_CASE("ragged batches are coded in pages and come back as on the host") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  int n = 0;
  for (device_codec const& c : device_codecs()) {
    kernels::simt::scoped_schedule const schedule(nth_schedule(n));
    auto const b = make_case(c, n, random);
    CAPTURE(c.name(), n, b.map.head_dim, b.map.page_tokens);
    std::int64_t nonfinite = 0;
    auto const expected = encode_on_host(b, nonfinite);
    check_encode(b, expected, nonfinite);
    check_decode(b, expected, n % 4 != 3);
    ++n;
  }
}

TEST_CASE("rows that no page or no whole group can take are refused and counted") {
  random_source random(test_seed());
  for (device_codec const& c : device_codecs()) {
    if (c.name() != "midrise3, keys" && c.name() != "affine2 along token, values") continue;
    CAPTURE(c.name());
    batch_case b = make_case(c, 0, random);
    std::int64_t nonfinite = 0;
    auto const expected = encode_on_host(b, nonfinite);
    // Sequence 3 has one row; its only page is now outside the pool.
    auto const entry = static_cast<std::size_t>(3 * b.batch.table_stride + b.batch.begins[3] / 32);
    auto const page = b.batch.tables[entry];
    b.batch.tables[entry] = static_cast<std::int32_t>(b.batch.pages);
    b.batch.begins[1] = -1;  // sequence 1 has five rows
    std::vector<std::byte> bytes(expected.size(), std::byte{0x5A});
    cuda::encode_counts counts;
    REQUIRE(c.encode({bytes.data(), b.map, {}}, b.plain.source(), b.batch.device(),
                     b.transform.view, &counts) == cudaSuccess);
    CHECK(counts.refused == 6);
    auto const page_bytes = b.map.codes.page_stride;
    bool untouched = true;
    for (std::int64_t i = 0; i < page_bytes; ++i) {
      untouched =
          untouched && bytes[static_cast<std::size_t>(page * page_bytes + i)] == std::byte{0x5A};
    }
    CHECK(untouched);
  }
}

}  // namespace
