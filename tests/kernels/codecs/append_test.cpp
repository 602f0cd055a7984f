// SPDX-License-Identifier: Apache-2.0
// Appends by slot, in any order: what is there is kept, what comes is coded as on the host.
#include "kernels/codecs/coding_case.hpp"
#include "kernels/codecs/device_codec.hpp"

#include <numeric>
#include <support/catch.hpp>
#include <utility>

namespace {

using namespace kvarts;
using namespace kvarts::test;

void shuffle_slots(std::vector<std::int64_t>& slots, random_source& random) {
  for (std::size_t i = slots.size(); i > 1; --i) {
    auto const k = static_cast<std::size_t>(random.between(0, static_cast<int>(i) - 1));
    std::swap(slots[i - 1], slots[k]);
  }
}

/// Slots of about a third of the room, in random order, some rows skipped. Those of a group of
/// tokens are all there, or its first ones.
std::vector<std::int64_t> draw_slots(layout const& m, bool along_tokens, random_source& random) {
  std::vector<std::int64_t> slots;
  std::int64_t const step = along_tokens ? m.group : 1;
  for (std::int64_t first = 0; first < m.tokens; first += step) {
    if (random.between(0, 2) != 0) continue;
    auto const count = step == 1 || random.between(0, 1) != 0
                           ? step
                           : std::int64_t{random.between(1, static_cast<int>(step) - 1)};
    for (std::int64_t i = 0; i < count; ++i) slots.push_back(first + i);
  }
  for (int i = 0; i < 3; ++i) slots.push_back(-1);
  shuffle_slots(slots, random);
  return slots;
}

/// The rows of `r` in the order of their slots, of those from `first` on.
rows rows_at(rows const& r, std::vector<std::int64_t> const& slots, token_range tokens) {
  rows out(r.heads, r.head_dim, tokens.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < tokens.begin || slots[i] >= tokens.end) continue;
    for (int h = 0; h < r.heads; ++h) {
      for (int d = 0; d < r.head_dim; ++d) {
        out.at(slots[i] - tokens.begin, h, d) = r.at(static_cast<std::int64_t>(i), h, d);
      }
    }
  }
  return out;
}

/// The host encodes run after run: tokens that follow each other (of one group, along tokens).
void append_on_host(device_codec const& c, coded<std::byte> to, rows const& r, dtype type,
                    std::vector<std::int64_t> const& slots, transform_view const& t) {
  std::vector<bool> present(static_cast<std::size_t>(to.map.tokens));
  for (std::int64_t const s : slots) {
    if (s >= 0) present[static_cast<std::size_t>(s)] = true;
  }
  std::int64_t const longest = c.along_tokens() ? to.map.group : 1;
  for (std::int64_t begin = 0; begin < to.map.tokens; begin += longest) {
    std::int64_t end = begin;
    while (end < begin + longest && present[static_cast<std::size_t>(end)]) ++end;
    if (end == begin) continue;
    auto const part = contiguous_memory(rows_at(r, slots, {begin, end}), type);
    REQUIRE(c.host_encode(to, part.source(), {begin, end}, t).code == status::ok);
  }
}

void check_append(device_codec const& c, int n, random_source& random) {
  constexpr int dims[] = {64, 128, 80, 192};
  int const heads = 1 + n % 2;
  int const head_dim = n % 5 == 0 && !c.is_fragment() ? 46 : dims[n % 4];
  int const group = c.info.grouped_along == axis::row ? 0 : (n % 2 == 0 ? 16 : 32);
  bool const pages = n % 2 == 0;
  int const page = 32 << (n / 2 % 2);
  layout const m = pages ? c.pages(heads, head_dim, 192 / page, page, {0, group, 16})
                         : c.head_tiles(heads, head_dim, 160, {0, group, 16});
  std::vector<std::int32_t> identity(static_cast<std::size_t>(m.pages()));
  std::iota(identity.begin(), identity.end(), 0);
  block_table const table{identity.data(), m.pages()};
  auto const t = make_transform(random, n % transform_kinds, heads, head_dim);
  CAPTURE(c.name(), n, head_dim, group, pages, page);

  auto const before = contiguous_memory(normal_rows(random, heads, head_dim, m.tokens), dtype::f32);
  std::vector<std::byte> expected(static_cast<std::size_t>(m.size_bytes()));
  REQUIRE(c.host_encode({expected.data(), m, table}, before.source(), {0, m.tokens}, t.view).code ==
          status::ok);
  auto bytes = expected;
  auto const slots = draw_slots(m, c.along_tokens(), random);
  auto const r =
      awkward_rows(random, heads, head_dim, static_cast<std::int64_t>(slots.size()), false);
  auto const source = nth_tensor(r, n);
  append_on_host(c, {expected.data(), m, table}, r, source.type, slots, t.view);

  cuda::encode_counts counts;
  REQUIRE(c.append({bytes.data(), m, {}}, source.source(), slots.data(), t.view, &counts) ==
          cudaSuccess);
  CHECK(bytes == expected);
  CHECK(counts.refused == 0);
}

TEST_CASE("rows are appended to their slots in any order") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  int n = 0;
  for (device_codec const& c : device_codecs()) {
    kernels::simt::scoped_schedule const schedule(nth_schedule(n));
    check_append(c, n++, random);
  }
}

TEST_CASE("slots outside the room and groups without their first tokens are refused") {
  random_source random(test_seed());
  for (device_codec const& c : device_codecs()) {
    if (c.name() != "symmetric3_wide along token, values" && c.name() != "int8_head, linear") {
      continue;
    }
    CAPTURE(c.name());
    int const group = c.along_tokens() ? 32 : 0;
    layout const m = c.head_tiles(2, 64, 64, {0, group, 16});
    auto const r = contiguous_memory(normal_rows(random, 2, 64, 3), dtype::f16);
    std::vector<std::byte> bytes(static_cast<std::size_t>(m.size_bytes()), std::byte{0x5A});
    auto const before = bytes;
    std::int64_t const slots[] = {64, c.along_tokens() ? 33 : 1000, c.along_tokens() ? 3 : -1};
    cuda::encode_counts counts;
    REQUIRE(c.append({bytes.data(), m, {}}, r.source(), slots, {}, &counts) == cudaSuccess);
    CHECK(counts.refused == (c.along_tokens() ? 3u : 2u));
    CHECK(bytes == before);
  }
}

}  // namespace
