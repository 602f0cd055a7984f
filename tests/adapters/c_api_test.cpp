// SPDX-License-Identifier: Apache-2.0
// The C entry points: SGLang's host pool and LMCache's serde as other languages call them.
#include "c_api.h"

#include "support/catch.hpp"
#include "support/random.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kvarts;
using Catch::Matchers::ContainsSubstring;

constexpr int layers = 3, heads = 2, head_dim = 48, row = heads * head_dim;
constexpr int tokens = 7;  // of a chunk

kvarts_tier_options options(char const* preset = "int8") {
  kvarts_tier_options o{};
  o.preset = preset;
  o.layers = layers;
  o.heads = heads;
  o.head_dim = head_dim;
  o.page_tokens = 4;
  o.alignment = 16;
  o.layout = 1;
  o.source = 2;
  o.threads = 2;
  return o;
}

using tier_handle = std::unique_ptr<kvarts_tier, decltype(&kvarts_tier_destroy)>;

tier_handle make_tier(kvarts_tier_options const& o) {
  tier_handle t(kvarts_tier_create(&o), kvarts_tier_destroy);
  INFO(kvarts_last_error());
  REQUIRE(t);
  return t;
}

std::string refusal(kvarts_tier_options const& o) {
  REQUIRE(kvarts_tier_create(&o) == nullptr);
  return kvarts_last_error();
}

std::vector<float> normal(test::random_source& random, std::int64_t count) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < count; ++i) x.push_back(static_cast<float>(random.normal()));
  return x;
}

/// Layers of K or V of a device, and the table of their addresses.
struct device_side {
  std::vector<std::vector<float>> rows;
  std::vector<std::uint64_t> table;

  device_side(test::random_source& random, int count) {
    for (int i = 0; i < layers; ++i) rows.push_back(normal(random, count * row));
    for (auto& r : rows) table.push_back(reinterpret_cast<std::uintptr_t>(r.data()));
  }
  device_side(device_side const&) = delete;
};

double relative_error(float const* x, float const* y, int count) {
  double errors = 0.0, squares = 0.0;
  for (int i = 0; i < count; ++i) {
    errors += std::pow(double{x[i]} - y[i], 2);
    squares += std::pow(double{x[i]}, 2);
  }
  return errors / squares;
}

TEST_CASE("a host pool backs up all layers and loads each layer back to other tokens") {
  auto const seed = test::test_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  auto const t = make_tier(options());
  // A row is 96 codes and 2 scales: 100 bytes, 112 at 16.
  REQUIRE(kvarts_get_size_per_token(t.get()) == 2 * layers * 112);
  REQUIRE(kvarts_host_bytes(t.get(), 0, 20) == 20 * layers * 112);
  std::vector<std::byte> keys(20 * layers * 112, std::byte{1}), values(keys);
  kvarts_host_pool const pool{keys.data(), values.data(), 20};

  device_side k(random, 9), v(random, 9);
  std::int64_t const host[] = {17, 0, 6}, from[] = {8, 2, 5}, to[] = {1, 0, 7};
  REQUIRE(kvarts_backup_from_device_all_layer(t.get(), &pool, k.table.data(), v.table.data(), 9,
                                              host, from, 3) == 0);
  auto const k_before = k.rows, v_before = v.rows;
  REQUIRE(kvarts_load_to_device_per_layer(t.get(), &pool, 1, k.rows[1].data(), v.rows[1].data(), 9,
                                          host, to, 3) == 0);
  for (auto const& [after, before] : {std::pair{&k.rows, &k_before}, {&v.rows, &v_before}}) {
    CHECK((*after)[0] == (*before)[0]);
    CHECK((*after)[2] == (*before)[2]);
    for (int i = 0; i < 3; ++i) {
      double const error =
          relative_error(&(*before)[1][from[i] * row], &(*after)[1][to[i] * row], row);
      CHECK((error > 0.0 && error < 1e-4));
    }
    for (int token : {2, 3, 4, 5, 6, 8}) {
      CHECK(std::memcmp(&(*before)[1][token * row], &(*after)[1][token * row], row * 4) == 0);
    }
  }
}

TEST_CASE("a host pool refuses what does not fit and changes nothing") {
  test::random_source random(3);
  auto const t = make_tier(options());
  std::vector<std::byte> keys(20 * layers * 112, std::byte{1}), values(keys);
  auto const before = keys;
  kvarts_host_pool pool{keys.data(), values.data(), 20};
  device_side k(random, 9), v(random, 9);
  auto const refused = [&](std::int64_t host, std::int64_t device) {
    std::int64_t const hosts[] = {0, host}, devices[] = {0, device};
    CHECK(kvarts_backup_from_device_all_layer(t.get(), &pool, k.table.data(), v.table.data(), 9,
                                              hosts, devices, 2) == -1);
    return std::string(kvarts_last_error());
  };
  CHECK_THAT(refused(20, 1), ContainsSubstring("destination 20 is outside the room of 20"));
  CHECK_THAT(refused(1, 9), ContainsSubstring("source 9 is outside the room of 9"));
  CHECK_THAT(refused(-1, 1), ContainsSubstring("-1"));
  CHECK_THAT(refused(0, 1), ContainsSubstring("destination 0 occurs twice"));
  pool.tokens = 18;
  CHECK_THAT(refused(1, 1), ContainsSubstring("18 tokens"));
  pool = {keys.data(), nullptr, 20};
  CHECK_THAT(refused(1, 1), ContainsSubstring("no memory"));
  CHECK((keys == before && values == before));
  std::int64_t const zero = 0;
  CHECK(kvarts_load_to_device_per_layer(t.get(), &pool, 3, k.rows[0].data(), v.rows[0].data(), 9,
                                        &zero, &zero, 1) == -1);
  CHECK_THAT(kvarts_last_error(), ContainsSubstring("no layer 3 among 3"));
  CHECK(kvarts_get_size_per_token(nullptr) == -1);
  CHECK(kvarts_host_bytes(t.get(), 2, 4) == -1);
  CHECK(kvarts_host_bytes(t.get(), 0, -4) == -1);
}

TEST_CASE("options that cannot be are refused by name") {
  CHECK_THAT(refusal(options("int9")), ContainsSubstring("no preset 'int9'"));
  CHECK_THAT(refusal(options("kivi")), ContainsSubstring("'kivi' is not among"));
  CHECK_THAT(refusal(options("k8v8")), ContainsSubstring("needs the center"));
  CHECK_THAT(refusal(options(nullptr)), ContainsSubstring("preset are needed"));
  auto const changed = [](auto change) {
    kvarts_tier_options o = options();
    change(o);
    return refusal(o);
  };
  CHECK_THAT(changed([](auto& o) { o.layers = 0; }), ContainsSubstring("not 0"));
  CHECK_THAT(changed([](auto& o) { o.head_dim = 1025; }), ContainsSubstring("1025"));
  CHECK_THAT(changed([](auto& o) { o.layout = 4; }), ContainsSubstring("layout is 4, not 0 to 3"));
  CHECK_THAT(changed([](auto& o) { o.source = -1; }), ContainsSubstring("source is -1"));
  CHECK_THAT(changed([](auto& o) { o.threads = 0; }), ContainsSubstring("not 0"));
  std::vector<float> const ones(layers * row, 1.0f);
  std::vector<float> norms(layers * row, 1.0f);
  norms[row + head_dim + 5] = -1.0f;
  kvarts_tier_options o = options("k8v8");
  o.center = ones.data();
  o.norm = norms.data();
  CHECK_THAT(refusal(o), ContainsSubstring("norm of head 1, channel 5"));
}

TEST_CASE("serialized chunks have the estimated size, come back, and are refused when damaged") {
  auto const seed = test::test_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  std::vector<float> const center(layers * row, 3.0f), norm(layers * row, 0.5f);
  kvarts_tier_options o = options("k8v8");
  o.center = center.data();
  o.norm = norm.data();
  auto const t = make_tier(o);
  auto const chunk = normal(random, 2 * layers * tokens * row);
  // A header of 256 bytes, and layers of 7 x 2 rows of 48 codes and a scale: 700 bytes, 704 at 16.
  std::int64_t const bytes = 2 * (256 + layers * 704);
  REQUIRE(kvarts_estimate_serialized_size(t.get(), tokens) == bytes);
  std::vector<std::byte> stored(static_cast<std::size_t>(bytes) + 100, std::byte{9});
  std::uint8_t key[32] = {1, 2, 3};
  REQUIRE(kvarts_serialize(t.get(), chunk.data(), tokens, stored.data(), bytes, key) == bytes);
  CHECK(stored[static_cast<std::size_t>(bytes)] == std::byte{9});

  std::vector<float> back(chunk.size(), 42.0f);
  auto const untouched = back;
  auto const restore = [&](std::vector<std::byte> const& from, int of_tokens = tokens) {
    return kvarts_deserialize(t.get(), from.data(), std::ssize(from), back.data(), of_tokens, key);
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(bytes); i += 37) {
    auto damaged = stored;
    damaged[i] ^= std::byte{16};
    REQUIRE(restore(damaged) == -1);
  }
  for (std::int64_t size = 0; size < bytes; size += 41) {
    REQUIRE(restore({stored.begin(), stored.begin() + size}) == -1);
  }
  CHECK(restore(stored, 6) == -1);
  CHECK_THAT(kvarts_last_error(), ContainsSubstring("has 7 tokens, the tier's pages have 6"));
  CHECK(restore(stored, 0) == -1);
  key[31] = 1;
  CHECK(restore(stored) == -1);
  key[31] = 0;
  o.model = "another";
  auto const other = make_tier(o);
  CHECK(kvarts_deserialize(other.get(), stored.data(), bytes, back.data(), tokens, key) == -1);
  CHECK_THAT(kvarts_last_error(), ContainsSubstring("configuration"));
  CHECK(back == untouched);

  REQUIRE(restore(stored) == 0);
  double const error = relative_error(chunk.data(), back.data(), static_cast<int>(chunk.size()));
  CHECK((error > 0.0 && error < 1e-3));
  CHECK(kvarts_serialize(t.get(), chunk.data(), tokens, stored.data(), bytes - 1, key) == -1);
  CHECK_THAT(kvarts_last_error(), ContainsSubstring("room for"));
}

}  // namespace
