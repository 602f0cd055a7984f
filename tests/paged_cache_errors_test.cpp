// SPDX-License-Identifier: Apache-2.0
// What a paged cache refuses, and that a refused call changes no byte.
#include "support/catch.hpp"
#include "support/make_any_scheme.hpp"
#include "support/token_rows.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using Catch::Matchers::ContainsSubstring;

constexpr cache_options base{.heads = 2,
                             .key_dim = 36,
                             .value_dim = 20,
                             .sequences = 2,
                             .pages = 4,
                             .page_tokens = 96,
                             .prefill_room = 160};

any_scheme scheme_of_rows() {
  return make_any_scheme(scheme<row_codec<midrise<4>>, row_codec<midrise<2>>>{
      "rows", key_transform::none, value_transform::rotated, {5, 7}});
}
any_scheme scheme_by_tokens() {
  return make_any_scheme(
      scheme<codec<affine<2>, axis::token, 32>, codec<affine<2>, axis::channel, 32>>{
          "by tokens", key_transform::none, value_transform::none, {32, 96}});
}

TEST_CASE("pages of 16, 32, 48, 64 and 128 tokens serve row codecs; groups need whole ones") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (std::int32_t const page : {16, 32, 48, 64, 128, 1, 7}) {
    CAPTURE(page);
    cache_options o = base;
    o.page_tokens = page;
    o.pages = 300 / page + 2;
    token_rows const x(random, o, 300);
    auto const c = scheme_of_rows().make(o);
    REQUIRE(c->add() == 0);
    REQUIRE(x.append_to(*c, 0, 0, 300).code == status::ok);
    CHECK((c->read(0) == c->expected(x.k, x.v, 300, nullptr)));

    if (page % 32 == 0) {
      auto const grouped = scheme_by_tokens().make(o);
      REQUIRE(grouped->add() == 0);
      REQUIRE(x.append_to(*grouped, 0, 0, 300).code == status::ok);
      CHECK((grouped->read(0) == grouped->expected(x.k, x.v, 300, nullptr)));
      continue;
    }
    try {
      scheme_by_tokens().make(o);
      FAIL_CHECK("a page that cuts groups was accepted");
    } catch (error const& e) {
      CHECK(e.code() == status::bad_page);
      CHECK_THAT(e.what(), ContainsSubstring("page of " + std::to_string(page) + " tokens"));
      CHECK_THAT(e.what(), ContainsSubstring("tiles of 32 tokens"));
    }
  }
}

TEST_CASE("a cache that cannot be made says why") {
  auto const refused = [](any_scheme const& s, cache_options const& o, status code,
                          std::string const& part) {
    try {
      s.make(o);
      FAIL_CHECK("accepted: " + part);
    } catch (error const& e) {
      CHECK(e.code() == code);
      CHECK_THAT(e.what(), ContainsSubstring(part));
    }
  };
  auto const with = [](auto change) {
    cache_options o = base;
    change(o);
    return o;
  };
  any_scheme const rows = scheme_of_rows();
  refused(rows, with([](auto& o) { o.sequences = 0; }), status::bad_sequence, "0 slots");
  refused(rows, with([](auto& o) { o.pages = 0; }), status::bad_page, "0 pages");
  refused(rows, with([](auto& o) { o.pages = -3; }), status::bad_page, "-3 pages");
  refused(rows, with([](auto& o) { o.page_tokens = 0; }), status::bad_page, "page of 0 tokens");
  refused(rows, with([](auto& o) { o.page_tokens = -32; }), status::bad_page, "page of -32 tokens");
  refused(rows, with([](auto& o) { o.heads = 0; }), status::bad_heads, "not 0");
  refused(rows, with([](auto& o) { o.key_dim = 0; }), status::bad_head_dim, "head_dim is 0");
  refused(rows, with([](auto& o) { o.value_dim = 1025; }), status::bad_head_dim, "1025");
  refused(rows, with([](auto& o) { o.alignment = 24; }), status::bad_alignment, "24");
  refused(rows, with([](auto& o) { o.append_slots = -1; }), status::bad_window, "-1 appended");
  refused(rows, with([](auto& o) { o.prefill_room = -2; }), status::bad_window, "-2 prefilled");
  refused(rows, with([](auto& o) { o.window_type = dtype::f32; }), status::unsupported, "f32");
  any_scheme const sink =
      make_any_scheme(scheme<row_codec<midrise<4>>, codec<affine<2>, axis::token, 48>>{
          "sink", key_transform::none, value_transform::none, {32, 96}});
  refused(sink, base, status::bad_window,
          "32 tokens (w_sink) is no multiple of the group of 48 tokens");
}

TEST_CASE("without a free page an append or a freeze changes nothing") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  for (any_scheme const& s : some_schemes()) {
    CAPTURE(s.name);
    cache_options o = base;
    o.page_tokens = page_size(s);
    o.pages = static_cast<std::int32_t>(ceil_div(s.window.sink + 150, o.page_tokens));
    o.prefill_room = s.window.recent + 400;
    auto const c = s.make(o);
    transform const t = s.random_transform(random, o.heads, o.key_dim);
    token_rows const x(random, o, 2000);
    int const full = c->add(), late = c->add();
    if (s.waits) REQUIRE(c->freeze(full, t) == status::ok);
    std::int64_t length = 0;
    while (x.append_to(*c, full, length, 16).code == status::ok) length += 16;
    REQUIRE(length >= s.window.sink + s.window.recent + 150 - 48);
    auto const memory = c->memory();
    for (std::int64_t const count : {16, 17, 100, 1000}) {
      REQUIRE(x.append_to(*c, full, length, count).code == status::no_pages);
      REQUIRE((c->memory() == memory));
    }
    REQUIRE((c->read(full) == c->expected(x.k, x.v, length, s.waits ? &t : nullptr)));

    // A sequence that needs pages to be coded when its transform comes.
    if (!s.waits) continue;
    REQUIRE(x.append_to(*c, late, 0, s.window.sink + s.window.recent + 200).code == status::ok);
    auto const waiting = c->memory();
    REQUIRE(c->freeze(late, t) == status::no_pages);
    REQUIRE((c->memory() == waiting));
    REQUIRE_FALSE(c->frozen(late));
    REQUIRE(c->remove(full) == status::ok);
    REQUIRE(c->crop(late, s.window.sink + s.window.recent + 100) == status::ok);
    REQUIRE(c->freeze(late, t) == status::ok);
    REQUIRE((c->read(late) == c->expected(x.k, x.v, c->length(late), &t)));
  }
}

TEST_CASE("rows of another geometry, and sequences that do not exist, are refused") {
  random_source random(test_seed());
  auto const c = scheme_of_rows().make(base);
  REQUIRE(c->add() == 0);
  token_rows const x(random, base, 300);
  REQUIRE(x.append_to(*c, 0, 0, 300).code == status::ok);
  auto const memory = c->memory();
  auto const refused = [&](status is, status code) {
    CHECK(is == code);
    CHECK((c->memory() == memory));
  };
  rows const k(2, 36, 4), v(2, 20, 4), narrow(2, 35, 4), one_head(1, 36, 4), short_v(2, 20, 3);
  refused(c->append(0, narrow.source(), v.source()).code, status::bad_head_dim);
  refused(c->append(0, k.source(), k.source()).code, status::bad_head_dim);
  refused(c->append(0, one_head.source(), v.source()).code, status::bad_heads);
  refused(c->append(0, k.source(), short_v.source()).code, status::bad_tokens);
  source_view negative = k.source(), too = v.source();
  negative.map.tokens = too.map.tokens = -1;
  refused(c->append(0, negative, too).code, status::bad_tokens);
  for (int const i : {-1, 1, 2, 1 << 30}) {
    CAPTURE(i);
    refused(c->append(i, k.source(), v.source()).code, status::bad_sequence);
    refused(c->freeze(i, {}), status::bad_sequence);
    refused(c->crop(i, 0), status::bad_sequence);
    refused(c->remove(i), status::bad_sequence);
    CHECK(c->fork(i) == -1);
  }
  refused(c->crop(0, 301), status::bad_tokens);
  refused(c->crop(0, -1), status::bad_tokens);
  refused(c->reorder({0}), status::bad_sequence);
  refused(c->reorder({0, 1}), status::bad_sequence);  // 1 is empty
  refused(c->reorder({0, -2}), status::bad_sequence);
  refused(c->move_page(0, 0), status::bad_page);
  refused(c->move_page(3, 2), status::bad_page);  // nobody has page 3
  refused(c->move_page(0, 4), status::bad_page);
  refused(c->move_page(-1, 3), status::bad_page);
  refused(c->append(0, rows(2, 36, 0).source(), rows(2, 20, 0).source()).code, status::ok);
}

TEST_CASE("a transform of another model, or one that no row can pass through, is refused") {
  random_source random(test_seed());
  any_scheme const& s = scheme_named("k3v2");
  auto const c = s.make(base);
  REQUIRE(c->add() == 0);
  token_rows const x(random, base, 150);
  REQUIRE(x.append_to(*c, 0, 0, 150).code == status::ok);
  auto const memory = c->memory();
  transform const good = s.random_transform(random, 2, 36);
  auto const refused = [&](auto change) {
    transform bad = good;
    change(bad);
    CHECK(c->freeze(0, bad) == status::bad_transform);
    CHECK((c->memory() == memory));
    CHECK_FALSE(c->frozen(0));
  };
  float const nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  refused([](transform& t) { t.heads = 1; });
  refused([](transform& t) { t.head_dim = 72; });
  refused([](transform& t) { t.norm.pop_back(); });
  refused([](transform& t) { t.center.resize(36); });
  refused([](transform& t) { t.norm[40] = 0.0f; });
  refused([](transform& t) { t.norm[71] = -1.0f; });
  refused([=](transform& t) { t.norm[3] = nan; });
  refused([=](transform& t) { t.norm[3] = infinity; });
  refused([=](transform& t) { t.center[9] = -infinity; });
  refused([](transform& t) { t.rotate.rounds = -1; });
  refused([](transform& t) { t.rotate.rounds = 5; });
  REQUIRE(c->freeze(0, good) == status::ok);
  CHECK(c->freeze(0, good) == status::bad_transform);  // once
  CHECK((c->read(0) == c->expected(x.k, x.v, 150, &good)));
}

}  // namespace
