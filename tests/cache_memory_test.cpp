// SPDX-License-Identifier: Apache-2.0
// A cache takes the memory that its layouts say, to the byte, and never more afterwards.
#include "support/allocation_watch.hpp"
#include "support/any_cache.hpp"
#include "support/catch.hpp"
#include "support/token_rows.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

std::int64_t rounded_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

/// Bytes of one page of one of K or V, counted by hand: code tiles of about 32 tokens, parameters
/// of groups behind their tile, scales of rows behind all tiles.
std::int64_t page_bytes(codec_info const& c, int step, int head_dim, cache_options const& o) {
  std::int64_t const usual = rounded_up(32, step);
  std::int64_t const tile_tokens = o.page_tokens % usual == 0 ? usual
                                   : step > 1                 ? step
                                                              : std::gcd(o.page_tokens, 32);
  std::int64_t const tiles = o.page_tokens / tile_tokens;
  std::int64_t const codes = (tile_tokens * head_dim * c.bits + 7) / 8;
  int const parameters = c.scale_bytes + c.zero_bytes;
  int const group = c.group != dynamic_group ? c.group : 32;
  std::int64_t together = 0, behind = 0;
  if (c.grouped_along == axis::channel) {
    together = tile_tokens * ((head_dim + group - 1) / group) * parameters;
  } else if (c.grouped_along == axis::token) {
    together = tile_tokens / step * head_dim * parameters;
  } else {
    behind = o.heads * o.page_tokens * parameters;
  }
  std::int64_t const all_tiles = o.heads * tiles * rounded_up(codes + together, o.alignment);
  return rounded_up(all_tiles + behind, o.alignment);
}

/// 16-bit rows of one token.
std::int64_t row_bytes(cache_options const& o) {
  return std::int64_t{2} * o.heads * (o.key_dim + o.value_dim);
}

std::int64_t ring_tokens(any_scheme const& s, cache_options const& o) {
  std::int64_t const waiting = std::max(s.key_step, s.value_step) - 1;
  std::int64_t const slots = std::max(o.append_slots, 1);
  std::int64_t const needed =
      std::max<std::int64_t>(s.window.recent + waiting + slots, o.prefill_room);
  return rounded_up(needed, std::lcm(s.key_step, s.value_step));
}

TEST_CASE("memory is what extents, bits and windows come to") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : all_schemes()) {
    for (int trial = 0; trial < 12; ++trial) {
      cache_options const o{.heads = random.between(1, 5),
                            .key_dim = random.between(1, 200),
                            .value_dim = random.between(1, 200),
                            .sequences = random.between(1, 4),
                            .pages = random.between(1, 5),
                            .page_tokens = page_size(s) * random.between(1, 4),
                            .append_slots = random.between(0, 100),
                            .prefill_room = random.between(0, 400),
                            .alignment = 1 << random.between(0, 8)};
      CAPTURE(s.name, trial, o.heads, o.key_dim, o.value_dim, o.pages, o.page_tokens, o.alignment);
      std::int64_t const codes = o.pages * (page_bytes(s.keys, s.key_step, o.key_dim, o) +
                                            page_bytes(s.values, s.value_step, o.value_dim, o));
      std::int64_t const windows = o.sequences * row_bytes(o) * (s.window.sink + ring_tokens(s, o));
      CHECK(s.make(o)->memory_bytes() == codes + windows);
    }
  }
}

TEST_CASE("InnerQ at 8 heads of 128: 3.5 bits a number, and 32 + 160 tokens in 16 bits") {
  cache_options const o{
      .heads = 8, .key_dim = 128, .value_dim = 128, .pages = 10, .page_tokens = 32};
  auto const c = scheme_named("innerq_base").make(o);
  CHECK(c->memory_bytes() == 2 * (10 * 32 * 8 * 128 * 7 / 16) + 2 * 2 * 8 * 128 * (32 + 160));
}

TEST_CASE("calls that do not promise memory of their own allocate nothing") {
  random_source random(test_seed());
  for (any_scheme const& s : some_schemes()) {
    CAPTURE(s.name);
    cache_options o{.heads = 2, .key_dim = 36, .value_dim = 20, .sequences = 3, .pages = 20};
    o.page_tokens = page_size(s);
    o.prefill_room = 160;
    auto const c = s.make(o);
    transform const t = s.random_transform(random, o.heads, o.key_dim);
    token_rows const x(random, o, 300);
    std::vector<float> q(2 * 36), output(2 * 20), lse(2);
    REQUIRE(c->add() == 0);
    REQUIRE(x.append_to(*c, 0, 0, 150).code == status::ok);
    if (s.waits) REQUIRE(c->freeze(0, t) == status::ok);

    allocation_watch const watch;
    bool good = x.append_to(*c, 0, 150, 150).code == status::ok;
    good = good && c->crop(0, 290) == status::ok && c->fork(0) == 1;
    good = good && x.append_to(*c, 1, 290, 10).code == status::ok;
    good = good && c->attend(1, 1, 2, q.data(), output.data(), lse.data(), {}) == status::ok;
    good = good && c->remove(0) == status::ok && c->add() == 0;
    std::size_t const bytes = watch.bytes();
    CHECK(good);
    CHECK(bytes == 0);
  }
}

}  // namespace
