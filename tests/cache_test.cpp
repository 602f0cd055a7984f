// SPDX-License-Identifier: Apache-2.0
// The cache of one sequence: freezing, room, what enters its windows.
#include "support/cache_content.hpp"
#include "support/catch.hpp"

#include <kvarts/cache.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

using innerq_keys = codec<symmetric<3, range::narrow>, axis::channel, 32>;
using innerq_values = codec<hybrid<2, range::narrow>, axis::token, 32>;
constexpr scheme<innerq_keys, innerq_values> innerq{
    "innerq", key_transform::innerq, value_transform::none, {32, 96}};
constexpr scheme<row_codec<midrise<4>>, row_codec<midrise<2>>> rotated{
    "rotated", key_transform::calibrated, value_transform::rotated, {32, 96}};
constexpr scheme<codec<affine<2>, axis::token, 32>, codec<affine<2>, axis::channel, 32>> kivi{
    "kivi", key_transform::none, value_transform::none, {0, 128}};

transform random_transform(random_source& random, int heads, int head_dim) {
  transform t{heads, head_dim, {}, {}, {1, 1}};
  for (int i = 0; i < heads * head_dim; ++i) {
    t.center.push_back(static_cast<float>(random.normal()));
    t.norm.push_back(static_cast<float>(0.5 + random.uniform()));
  }
  return t;
}

template <codec_type K, codec_type V>
content expected(scheme<K, V> const& s, rows const& k, rows const& v, dtype window,
                 transform_view const& t, bool coding) {
  transform_view const of_values{nullptr, nullptr, 0, value_rotation(s.values)};
  return {expected_side<K>(k, k.tokens, s.window, window, t, coding),
          expected_side<V>(v, v.tokens, s.window, window, of_values, coding)};
}

TEST_CASE("tokens wait in 16 bits until the transform is frozen, and are coded then") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  rows const k = normal_rows(random, 3, 192, 400), v = normal_rows(random, 3, 128, 400);
  transform const t = random_transform(random, 3, 192);
  for (std::int64_t const freeze_at : {0, 1, 32, 130, 300, 332}) {
    CAPTURE(freeze_at);
    cache c(rotated, 400, {.heads = 3, .key_dim = 192, .value_dim = 128, .prefill_room = 300});
    CHECK_FALSE(c.frozen());
    REQUIRE(c.append(slice(k.source(), 0, freeze_at), slice(v.source(), 0, freeze_at)).code ==
            status::ok);
    CHECK(c.view().key_parts.coded() == 0);
    CHECK(c.view().value_parts.coded() == 0);
    REQUIRE(c.freeze(t) == status::ok);
    CHECK(c.frozen());
    CHECK(c.view().key_parts.coded() == std::max<std::int64_t>(0, freeze_at - 128));
    REQUIRE(c.append(slice(k.source(), freeze_at, 400 - freeze_at),
                     slice(v.source(), freeze_at, 400 - freeze_at))
                .code == status::ok);
    CHECK(c.length() == 400);
    CHECK((read_content(c.view()) == expected(rotated, k, v, dtype::f16, t.view(), true)));
    CHECK(c.freeze(t) == status::bad_transform);
  }
}

TEST_CASE("more than the 16-bit room before freezing is refused by a status of its own") {
  random_source random(test_seed());
  rows const k = normal_rows(random, 1, 64, 400), v = normal_rows(random, 1, 64, 400);
  // Values leave by 32, so the ring holds whole groups: 130 becomes 160. Then the sinks.
  cache c(innerq, 400, {.heads = 1, .key_dim = 64, .append_slots = 1, .prefill_room = 130});
  REQUIRE(c.append(slice(k.source(), 0, 190), slice(v.source(), 0, 190)).code == status::ok);
  CHECK(c.append(slice(k.source(), 190, 3), slice(v.source(), 190, 3)).code ==
        status::no_window_room);
  CHECK(c.length() == 190);
  REQUIRE(c.append(slice(k.source(), 190, 2), slice(v.source(), 190, 2)).code == status::ok);
  CHECK(c.append(slice(k.source(), 192, 1), slice(v.source(), 192, 1)).code ==
        status::no_window_room);
  rows k192 = k, v192 = v;
  k192.tokens = v192.tokens = 192;
  CHECK((read_content(c.view()) == expected(innerq, k192, v192, dtype::f16, {}, false)));
  transform const t = random_transform(random, 1, 64);
  REQUIRE(c.freeze(t) == status::ok);
  REQUIRE(c.append(slice(k.source(), 192, 208), slice(v.source(), 192, 208)).code == status::ok);
  CHECK((read_content(c.view()) == expected(innerq, k, v, dtype::f16, t.view(), true)));
}

TEST_CASE("a full cache says so, cropping makes room, clearing forgets the transform") {
  random_source random(test_seed());
  rows const k = normal_rows(random, 1, 64, 400), v = normal_rows(random, 1, 64, 400);
  cache c(rotated, 200, {.heads = 1, .key_dim = 64});
  transform const t = random_transform(random, 1, 64);
  REQUIRE(c.freeze(t) == status::ok);
  // 200 becomes 7 tiles of 32 tokens; the recent window comes on top.
  REQUIRE(c.append(slice(k.source(), 0, 320), slice(v.source(), 0, 320)).code == status::ok);
  CHECK(c.append(slice(k.source(), 320, 1), slice(v.source(), 320, 1)).code == status::no_pages);
  CHECK(c.length() == 320);
  REQUIRE(c.crop(310) == status::ok);
  CHECK(c.append(slice(k.source(), 310, 10), slice(v.source(), 310, 10)).code == status::ok);
  rows k320 = k, v320 = v;
  k320.tokens = v320.tokens = 320;
  content const whole = expected(rotated, k320, v320, dtype::f16, t.view(), true);
  CHECK((read_content(c.view()) == whole));

  cache moved = std::move(c);
  CHECK((read_content(moved.view()) == whole));
  moved.clear();
  CHECK(moved.length() == 0);
  CHECK_FALSE(moved.frozen());
  REQUIRE(moved.freeze(t) == status::ok);
  REQUIRE(moved.append(k320.source(), v320.source()).code == status::ok);
  CHECK((read_content(moved.view()) == whole));
}

TEST_CASE("groups that do not divide 32 tokens have a cache too") {
  random_source random(test_seed());
  constexpr scheme<codec<affine<2>, axis::token, 48>, codec<affine<2>, axis::token, 20>> odd{
      "odd", key_transform::none, value_transform::none, {240, 3}};
  rows const k = normal_rows(random, 1, 16, 700), v = normal_rows(random, 1, 16, 700);
  cache c(odd, 700, {.heads = 1, .key_dim = 16});
  REQUIRE(c.append(k.source(), v.source()).code == status::ok);
  CHECK((read_content(c.view()) == expected(odd, k, v, dtype::f16, {}, true)));
}

TEST_CASE("windows of f16 and bf16 take sources of any type, rounded once") {
  random_source random(test_seed());
  CAPTURE(test_seed());
  rows k = normal_rows(random, 3, 46, 150), v = normal_rows(random, 3, 46, 150);
  k.at(3, 1, 4) = 1e9f;      // saturates in f16, not in bf16
  v.at(149, 0, 2) = 1e-30f;  // 0 in f16
  for (dtype const window : {dtype::f16, dtype::bf16}) {
    for (dtype const source : {dtype::f16, dtype::bf16, dtype::f32}) {
      CAPTURE(to_string(window), to_string(source));
      cache c(innerq, 150, {.heads = 3, .key_dim = 46, .window_type = window});
      transform const t = random_transform(random, 3, 46);
      REQUIRE(c.freeze(t) == status::ok);
      auto const keys = contiguous_memory(k, source), values = contiguous_memory(v, source);
      REQUIRE(c.append(keys.source(), values.source()).code == status::ok);
      rows stored_k = k, stored_v = v;  // as the source's type holds them
      for (rows* x : {&stored_k, &stored_v}) {
        for (float& value : x->values) {
          if (source == dtype::f16) value = saturate<half>(value);
          if (source == dtype::bf16) value = saturate<bfloat16>(value);
        }
      }
      CHECK(
          (read_content(c.view()) == expected(innerq, stored_k, stored_v, window, t.view(), true)));
    }
  }
}

TEST_CASE("numbers that are not finite are counted once, and only their row or group knows") {
  random_source random(test_seed());
  float const nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  rows const k = normal_rows(random, 2, 64, 300), v = normal_rows(random, 2, 64, 300);
  rows bad_k = k, bad_v = v, k0 = k, v0 = v;
  bad_k.at(0, 0, 0) = nan;  // a sink
  k0.at(0, 0, 0) = 0.0f;
  bad_k.at(40, 1, 63) = -infinity;  // coded
  k0.at(40, 1, 63) = -65504.0f;     // as the window holds it
  bad_k.at(299, 0, 7) = nan;        // recent
  k0.at(299, 0, 7) = 0.0f;
  bad_v.at(41, 1, 3) = infinity;
  v0.at(41, 1, 3) = 65504.0f;
  for (std::int64_t const step : {300, 1}) {
    cache c(kivi, 300, {.heads = 2, .key_dim = 64});
    std::int64_t nonfinite = 0;
    for (std::int64_t i = 0; i < 300; i += step) {
      auto const r = c.append(slice(bad_k.source(), i, step), slice(bad_v.source(), i, step));
      REQUIRE(r.code == status::ok);
      nonfinite += r.nonfinite;
    }
    CHECK(nonfinite == 4);
    CHECK((read_content(c.view()) == expected(kivi, k0, v0, dtype::f16, {}, true)));
  }
}

TEST_CASE("2-bit keys grouped along tokens are really coded as tokens come one by one") {
  random_source random(test_seed());
  rows const k = normal_rows(random, 1, 32, 400), v = normal_rows(random, 1, 32, 400);
  cache c(kivi, 400, {.heads = 1, .key_dim = 32});
  for (std::int64_t i = 0; i < 400; ++i) {
    REQUIRE(c.append(slice(k.source(), i, 1), slice(v.source(), i, 1)).code == status::ok);
  }
  auto const s = c.view();
  CHECK(s.key_parts.coded_end == 256);
  double errors = 0.0, squares = 0.0;
  for (std::int64_t t = 0; t < s.key_parts.coded_end; ++t) {
    float row[32];
    decode_row(s.keys, 0, t, row);
    for (int d = 0; d < 32; ++d) {
      double const x = k.at(t, 0, d);
      errors += (double(row[d]) - x) * (double(row[d]) - x);
      squares += x * x;
    }
  }
  // Steps of a third of the range of 32 normal numbers, about 1.4: 1.4^2 / 12.
  CHECK(errors / squares > 0.1);
  CHECK(errors / squares < 0.25);
}

}  // namespace

TEST_CASE("a cache without room is refused by its number") {
  for (std::int32_t const room : {0, -5, std::numeric_limits<std::int32_t>::min()}) {
    try {
      cache const c(rotated, room, {.heads = 1, .key_dim = 64});
      FAIL("accepted");
    } catch (error const& e) {
      CHECK(e.code() == status::bad_tokens);
      CHECK(std::string(e.what()) == "a cache has room for " + std::to_string(room) + " tokens");
    }
  }
}
