// SPDX-License-Identifier: Apache-2.0
// Every tier that cannot be is refused in a sentence with the number that does not fit.
#include "support/catch.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <limits>
#include <string>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using Catch::Matchers::ContainsSubstring;

using int8_rows = row_codec<int8_head>;
using by_token = codec<symmetric<3, range::narrow>, axis::token, 32>;

geometry usual() {
  return uniform_geometry(4, 8, segment_of<int8_rows>(128), segment_of<int8_rows>(128));
}

/// The geometry, changed so, has this fault; `make_geometry` says the same.
template <class F>
void require_bad(status code, std::string const& part, F&& change) {
  geometry g = usual();
  change(g);
  CAPTURE(part);
  problem const p = check(g);
  CHECK(to_string(p.code) == std::string(to_string(code)));
  CHECK_THAT(p.sentence(), ContainsSubstring(part));
  CHECK(validate(g) == p.code);
  CHECK_THROWS_WITH(make_geometry(g), p.sentence());
}

TEST_CASE("a usual tier has no fault") {
  CHECK_FALSE(check(usual()));
  CHECK_NOTHROW(make_geometry(usual()));
}

TEST_CASE("layers") {
  for (int const n : {0, -1, 257, 1 << 30}) {
    require_bad(status::unsupported, std::to_string(n), [&](geometry& g) { g.layers = n; });
  }
  require_bad(status::unsupported, "layer 2 is of kind 9",
              [](geometry& g) { g.kind_of_layer[2] = 9; });
  require_bad(status::unsupported, "layer 3 keeps nothing",
              [](geometry& g) { g.kind_of_layer[3] = 1; });
}

TEST_CASE("heads, head_dim, pages, alignment") {
  for (int const n : {0, -8, 65537}) {
    require_bad(status::bad_heads, std::to_string(n), [&](geometry& g) { g.heads = n; });
  }
  for (int const d : {0, -1, 1025}) {
    require_bad(status::bad_head_dim, std::to_string(d),
                [&](geometry& g) { g.kinds[0].values = segment_of<int8_rows>(d); });
  }
  for (int const n : {0, -16, 65537}) {
    require_bad(status::bad_page, std::to_string(n), [&](geometry& g) { g.page_tokens = n; });
  }
  for (int const n : {0, -128, 24, 1 << 21}) {
    require_bad(status::bad_alignment, std::to_string(n), [&](geometry& g) { g.alignment = n; });
  }
}

TEST_CASE("codecs and groups") {
  require_bad(status::unsupported, "0 bits",
              [](geometry& g) { g.kinds[0].keys.segments[0].codec = {}; });
  require_bad(status::unsupported, "groups of 32 tokens",
              [](geometry& g) { g.kinds[0].values = segment_of<by_token>(128); });
  require_bad(status::bad_page, "a page of 48 tokens", [](geometry& g) {
    g.kinds[0].values = segment_of<by_token>(128);
    g.record = record_kind::page;
    g.page_tokens = 48;
  });
  require_bad(status::bad_group, "16 where the codec has 32", [](geometry& g) {
    g.kinds[0].values = segment_of<by_token>(128, 16);
    g.record = record_kind::page;
    g.page_tokens = 64;
  });
  require_bad(status::unsupported, "not 3", [](geometry& g) { g.kinds[0].keys.count = 3; });
  require_bad(status::unsupported, "not -1", [](geometry& g) { g.kinds[0].keys.count = -1; });
}

TEST_CASE("ranks that heads cannot be split among") {
  for (auto const& [heads, ranks] :
       {std::pair{8, 3}, {8, 12}, {8, 0}, {8, -2}, {0, 1}, {10, 4}, {-8, 2}}) {
    CAPTURE(heads, ranks);
    CHECK(check_ranks(heads, ranks).code == status::bad_heads);
  }
  CHECK_THAT(check_ranks(8, 3).sentence(),
             ContainsSubstring("8 KV heads") && ContainsSubstring("3 ranks"));
}

TEST_CASE("page counts, layers and segments of a layout") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  geometry const g = usual();
  for (std::int64_t const pages : {std::int64_t{-1}, (std::int64_t{1} << 31) + 1, most}) {
    CHECK_THROWS_WITH(make_layout(g, side::keys, 0, pages),
                      ContainsSubstring(std::to_string(pages)));
  }
  CHECK_THROWS_WITH(make_layout(g, side::keys, 4, 1), ContainsSubstring("no layer 4 among 4"));
  CHECK_THROWS_WITH(make_layout(g, side::keys, -1, 1), ContainsSubstring("-1"));
  CHECK_THROWS_WITH(make_layout(g, side::values, 0, 1, 1),
                    ContainsSubstring("no segment 1 among 1"));
  geometry large = g;
  large.alignment = 1 << 20;
  large.placement = host_layout::page_head;
  large.layers = 256;
  CHECK_THAT(check(large, std::int64_t{1} << 31).sentence(), ContainsSubstring("too many"));
}

TEST_CASE("budgets") {
  geometry const g = usual();
  CHECK_FALSE(check_budget(g, bytes_per_page(g)));
  CHECK_THAT(check_budget(g, bytes_per_page(g) - 1).sentence(),
             ContainsSubstring("9215 bytes") && ContainsSubstring("9216 bytes"));
  CHECK(check_budget(g, -5).code == status::no_pages);
  CHECK(check_budget(g, std::numeric_limits<std::int64_t>::max()).code == status::bad_tokens);
  CHECK(capacity_for(g, -5) == capacity{});
}

TEST_CASE("sizes at the limits do not overflow") {
  using widest = codec<symmetric<8, range::wide>, axis::channel, 1>;
  geometry g = uniform_geometry(geometry::max_layers, 65536, segment_of<widest>(1024),
                                segment_of<widest>(1024));
  g.page_tokens = 65536;
  g.placement = host_layout::page_head;
  g.alignment = 1 << 20;
  REQUIRE_FALSE(check(g));
  CHECK(record_bytes(g, side::keys, 0) == 1 << 20);
  CHECK(bytes_per_page(g) / (1 << 20) == std::int64_t{512} << 32);
  CHECK(check(g, 1).code == status::bad_page);
}

}  // namespace
