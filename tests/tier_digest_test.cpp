// SPDX-License-Identifier: Apache-2.0
// The digest that keeps the pages of one configuration from another: every field counts.
#include "support/byte_strings.hpp"
#include "support/catch.hpp"

#include <kvarts/scheme.hpp>
#include <kvarts/tier/namespace_digest.hpp>

#include <array>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using Catch::Matchers::ContainsSubstring;
using kvarts::test::bytes_of;
using kvarts::test::number;

using int8_rows = row_codec<int8_head>;
template <int Bits, range Range, axis Along>
using grouped = codec<symmetric<Bits, Range>, Along>;

constexpr int layers = 3, heads = 2, head_dim = 6;

constexpr auto matrix_of(bool exchange) {
  std::array<float, head_dim * head_dim> m{};
  for (std::size_t i = 0; i < head_dim; ++i) {
    m[i * head_dim + (exchange ? head_dim - 1 - i : i)] = 1.0f;
  }
  return m;
}
constexpr auto identity_matrix = matrix_of(false), exchange_matrix = matrix_of(true);

/// A configuration that owns its transforms.
struct owned_config {
  page_config config;
  std::vector<std::vector<float>> parts;
  std::vector<transform_view> keys, values;

  owned_config() {
    auto const three = segment_of<grouped<3, range::wide, axis::channel>>(head_dim, 4);
    config.shape = uniform_geometry(layers, heads, three, segment_of<int8_rows>(head_dim));
    config.shape.record = record_kind::page;
    config.shape.page_tokens = 8;
    config.shape.alignment = 16;
    config.model = "a model";
    for (int i = 0; i < 2 * layers; ++i) parts.emplace_back(heads * head_dim, 1.5f);
    for (int i = 0; i < layers; ++i) {
      keys.push_back({parts[2 * i].data(), parts[2 * i + 1].data(), head_dim, {1, 1}});
      values.push_back({nullptr, nullptr, 0, {1, 1}});
    }
    config.keys = keys;
    config.values = values;
  }
  owned_config(owned_config const&) = delete;
};

using change = std::function<void(owned_config&)>;

sha256_digest digest_with(change const& apply) {
  owned_config c;
  apply(c);
  REQUIRE_FALSE(check(c.config));
  return namespace_digest(c.config);
}

template <class C>
change coded_by(int group = 0) {
  return
      [group](owned_config& c) { c.config.shape.kinds[0].keys = segment_of<C>(head_dim, group); };
}

change shaped(std::function<void(geometry&)> const& apply) {
  return [apply](owned_config& c) { apply(c.config.shape); };
}

TEST_CASE("the digest changes with everything that changes bytes or their meaning") {
  std::vector<change> const changes = {
      [](owned_config&) {},
      coded_by<grouped<3, range::narrow, axis::channel>>(4),
      coded_by<grouped<4, range::wide, axis::channel>>(4),
      coded_by<grouped<3, range::wide, axis::channel>>(3),
      coded_by<grouped<3, range::wide, axis::token>>(4),
      coded_by<codec<hybrid<3, range::wide>, axis::channel>>(4),
      coded_by<row_codec<codebook<3, half>>>(),
      coded_by<row_codec<codebook<3, float>>>(),
      coded_by<identity<half>>(),
      coded_by<identity<bfloat16>>(),
      shaped([](geometry& g) { std::swap(g.kinds[0].keys, g.kinds[0].values); }),
      shaped([](geometry& g) {
        g.kinds[1] = {segment_of<int8_rows>(head_dim), g.kinds[0].values};
        g.kind_of_layer[1] = 1;
      }),
      shaped([](geometry& g) {
        g.kinds[1] = {segment_of<int8_rows>(head_dim), g.kinds[0].values};
        g.kind_of_layer[2] = 1;
      }),
      shaped([](geometry& g) { g.kinds[0].values = {}; }),
      shaped([](geometry& g) {
        g.kinds[0].values = {segment_of<int8_rows>(head_dim), segment_of<identity<half>>(2)};
      }),
      shaped([](geometry& g) { g.kinds[0].values = segment_of<int8_rows>(head_dim - 1); }),
      shaped([](geometry& g) { g.page_tokens = 16; }),
      shaped([](geometry& g) { g.record = record_kind::row; }),
      shaped([](geometry& g) { g.head_order = order::token_major; }),
      shaped([](geometry& g) { g.alignment = 128; }),
      shaped([](geometry& g) { g.placement = host_layout::page_first; }),
      shaped([](geometry& g) { g.placement = host_layout::page_head; }),
      shaped([](geometry& g) { g.heads = 1; }),
      [](owned_config& c) {
        c.config.shape.layers = 2;
        c.config.keys = c.config.keys.first(2);
        c.config.values = c.config.values.first(2);
      },
      [](owned_config& c) { c.config.source = dtype::f16; },
      [](owned_config& c) { c.config.model = "a model "; },
      [](owned_config& c) { c.config.keys = {}; },
      [](owned_config& c) { c.parts[4][11] = 1.50000012f; },
      [](owned_config& c) { c.parts[5][0] = 1.50000012f; },
      [](owned_config& c) { c.parts[2].assign(heads * head_dim, 0.0f); },
      [](owned_config& c) { c.parts[2].assign(heads * head_dim, -0.0f); },
      [](owned_config& c) { c.keys[1].center = nullptr; },
      [](owned_config& c) { c.keys[1].norm = nullptr; },
      [](owned_config& c) { c.keys[1].rotate.rounds = 2; },
      [](owned_config& c) { c.keys[1].rotate.seed = 2; },
      [](owned_config& c) { c.values[2].rotate.seed = 2; },
      [](owned_config& c) { c.values[2].rotate.dense = identity_matrix.data(); },
      [](owned_config& c) { c.values[2].rotate.dense = exchange_matrix.data(); },
  };
  std::set<sha256_digest> seen;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    CHECK(seen.insert(digest_with(changes[i])).second);
  }
}

TEST_CASE("the digest is that of the message that its description gives") {
  geometry g = uniform_geometry(1, 2, segment_of<grouped<3, range::wide, axis::channel>>(2, 4),
                                segment_of<int8_rows>(5));
  g.page_tokens = 8;
  g.record = record_kind::page;
  g.placement = host_layout::page_head;
  float const center[] = {1.0f, 2.0f, 3.0f, 4.0f};
  transform_view const keys{center, nullptr, 2, {2, 9}};
  std::string message;
  auto const numbers = [&](auto... all) { ((message += number<std::uint64_t>(all)), ...); };
  auto const text = [&](std::string const& t) {
    numbers(t.size());
    message += t;
  };
  text("kvarts page");
  numbers(1u, 1u);
  text("m");
  numbers(0u, 1u, 2u, 8u, 1u, 1u, 128u, 3u);  // f16, layers, heads, P, page, head_major, ...
  numbers(1u);
  text("symmetric3_wide");
  numbers(3u, 1u, 4u, 2u, 0u, 0u, 0u, 2u);
  numbers(1u);
  for (float const c : center) message += number(c);
  numbers(0u, 0u, 2u, 9u);
  numbers(1u);
  text("int8_head");
  numbers(8u, 0u, 0u, 2u, 1u, 0u, 0u, 5u);
  numbers(0u, 0u, 0u, 0u, 0u);
  sha256 hash;
  hash.update(bytes_of(message));
  CHECK(namespace_digest({g, dtype::f16, {&keys, 1}, {}, "m"}) == hash.finish());
}

TEST_CASE("the digest does not change with what changes no byte") {
  auto const same = digest_with([](owned_config&) {});
  CHECK(digest_with([](owned_config&) {}) == same);
  auto const unused_kind = [](geometry& g) { g.kinds[3].keys = segment_of<int8_rows>(99); };
  CHECK(digest_with(shaped(unused_kind)) == same);
  auto const default_group = [](owned_config& c) {
    c.config.shape.kinds[0].keys = segment_of<grouped<3, range::wide, axis::channel>>(head_dim, 0);
  };
  auto const written_out = coded_by<grouped<3, range::wide, axis::channel>>(32);
  CHECK(digest_with(default_group) == digest_with(written_out));
  auto const other_seed = [](owned_config& c) {
    for (auto& t : c.values) t.rotate = {0, 77};
  };
  auto const no_seed = [](owned_config& c) {
    for (auto& t : c.values) t.rotate = {};
  };
  CHECK(digest_with(other_seed) == digest_with(no_seed));
  auto const strided = [](owned_config& c) {
    for (int i = 0; i < 2 * layers; ++i) c.parts[i].resize(100, 1.5f);
    for (int i = 0; i < layers; ++i) {
      c.keys[i] = {c.parts[2 * i].data(), c.parts[2 * i + 1].data(), 50, {1, 1}};
    }
  };
  CHECK(digest_with(strided) == same);
}

TEST_CASE("a configuration that cannot be is refused by name") {
  owned_config c;
  c.config.keys = c.config.keys.first(2);
  CHECK_THAT(check(c.config).sentence(), ContainsSubstring("2 transforms for 3 layers"));
  c.config.keys = c.keys;
  c.parts[3][7] = 0.0f;
  CHECK_THAT(check(c.config).sentence(), ContainsSubstring("norm of head 1, channel 1"));
  c.parts[3][7] = 1.0f;
  c.parts[4][2] = std::numeric_limits<float>::infinity();
  CHECK_THAT(check(c.config).sentence(), ContainsSubstring("center of head 0, channel 2"));
  c.parts[4][2] = 0.0f;
  CHECK_FALSE(check(c.config));
  c.config.shape.page_tokens = 0;
  CHECK_THAT(check(c.config).sentence(), ContainsSubstring("not 0"));
}

}  // namespace
