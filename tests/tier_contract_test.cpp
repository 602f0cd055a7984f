// SPDX-License-Identifier: Apache-2.0
// The lines of the tier's ordering contract that are not waits: generations of layer events,
// lifetimes of indices, fixed points, captures.
#include "support/catch.hpp"
#include "support/tier_scenario.hpp"

#include <kvarts/kvarts.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using namespace kvarts::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("7: layer events carry a generation and are not recorded again while it is open") {
  scripted_device d(1);
  layer_events<scripted_device> events(d, 3, 2);
  REQUIRE(events.ready());
  std::int64_t first = 0, second = 0, third = 0;
  REQUIRE_FALSE(events.open(first));
  REQUIRE_FALSE(events.open(second));
  CHECK(events.open(third).sentence() == "generation 1 of layer events may still be waited for");

  // A wait that comes before the record would pass at once: it is refused.
  CHECK(events.wait(first, 2, 0).sentence() == "layer 2 of generation 1 is not enqueued yet");
  CHECK(d.waits == 0);
  CHECK(events.record(first, 2, 1));
  CHECK_FALSE(events.wait(first, 2, 0));
  CHECK(d.waits == 1);
  CHECK(events.wait(second, 2, 0).sentence() == "layer 2 of generation 2 is not enqueued yet");
  CHECK_FALSE(events.record(first, 2, 1));
  CHECK(events.check_record(first, 2).sentence() == "layer 2 of generation 1 is recorded already");

  // Once it is closed its events belong to the third, and waits for it are refused.
  events.close(first);
  REQUIRE_FALSE(events.open(third));
  CHECK(third == 3);
  CHECK_THAT(events.wait(first, 2, 0).sentence(),
             ContainsSubstring("generation 1 of layer events"));
  CHECK_FALSE(events.record(first, 0, 1));
  CHECK(events.wait(third, 2, 0).code == status::unsupported);
  for (int const layer : {-1, 3}) CHECK(events.wait(third, layer, 0).code == status::unsupported);
  events.close(first);  // long past: the third stays open
  CHECK(events.record(third, 2, 1));
}

/// A load to all pages of a tier's model.
struct loading {
  random_source random{1};
  tier_model model;
  scripted_device d{7};
  std::vector<std::byte> slices = std::vector<std::byte>(8192);
  index_lists pairs{{0, 1}, {1, 2}};

  explicit loading(geometry const& g) : model(g, random) {
    for (auto const& p : model.pools) d.own(p.bytes);
    d.own(slices);
  }
  page_moves moves() const { return {pairs.pairs(), model.g.page_tokens, 1}; }
};

geometry pages_of(host_layout how) {
  geometry g = uniform_geometry(3, 2, segment_of<row_codec<midrise<8>>>(16),
                                segment_of<row_codec<int8_head>>(24));
  g.page_tokens = 8;
  g.record = record_kind::page;
  g.placement = how;
  g.alignment = 16;
  return g;
}

TEST_CASE("7: a load is refused when its generation is not open, before anything is enqueued") {
  loading l(pages_of(host_layout::layer_first));
  staging_ring<scripted_device> ring(l.d, {l.slices.data(), 8192}, 2);
  page_mover<scripted_device> mover(l.d, ring);
  layer_events<scripted_device> events(l.d, 3, 1);
  auto const layers = l.model.layers<std::byte>();
  auto const load = [&](std::int64_t generation) {
    return mover.load(l.model.tier(), std::span(layers), {0, 3}, l.moves(), {0, 1},
                      {{}, {}, {}, &events, generation});
  };
  CHECK(load(1).code == status::unsupported);
  CHECK(l.d.launches + l.d.copies + l.d.waits == 0);
  std::int64_t generation = 0;
  REQUIRE_FALSE(events.open(generation));
  CHECK_FALSE(load(generation));
  CHECK(load(generation).sentence() == "layer 0 of generation 1 is recorded already");
  l.d.finish();
  CHECK(l.d.faults == "");
}

TEST_CASE("8: lists in device memory are read until the work is done") {
  CAPTURE(test_seed());
  for (host_layout const how : host_layouts) {
    scenario_shape const shape{pages_of(how), 0, true};
    std::string found;
    for (std::uint64_t i = 0; i < 100 && found.empty(); ++i) {
      found = scenario(shape, test_seed() + i).run(wait_for::lists);
    }
    CHECK(found != "");  // with the wait nothing is found: tier_ordering_test
  }
}

/// Rows coded, decoded to `type` and encoded again.
template <class C>
bool same_again(rows const& in, dtype type) {
  layout const m = make_row_records<C>(in.heads, in.head_dim, in.tokens);
  std::vector<std::byte> once(static_cast<std::size_t>(m.size_bytes())), twice = once;
  plain_memory mid = contiguous_memory(rows(in.heads, in.head_dim, in.tokens), type);
  token_range const all{0, in.tokens};
  REQUIRE(encode(view<C>{once.data(), m, {}}, in.source(), all).code == status::ok);
  REQUIRE(decode(view<C>{once.data(), m, {}}, mid.target(), all) == status::ok);
  REQUIRE(encode(view<C>{twice.data(), m, {}}, mid.source(), all).code == status::ok);
  return once == twice;
}

TEST_CASE("9: INT8 a head is a fixed point in bfloat16, for every scale and code") {
  using int8_rows = row_codec<int8_head>;
  REQUIRE(reencodes_alike(info_of<int8_rows>(), dtype::bf16));
  REQUIRE(reencodes_alike(info_of<int8_rows>(), dtype::f32));
  REQUIRE_FALSE(reencodes_alike(info_of<int8_rows>(), dtype::f16));
  // The largest of a row is every bfloat16, with all codes beside it.
  rows in(1, 255, 0x7F80);
  for (std::uint16_t bits = 0; bits < in.tokens; ++bits) {
    float const largest = bfloat16::from_bits(bits);
    float const scale = saturate<bfloat16>(std::max(largest, 0x1p-112f) / 127.0f);
    for (int q = -126; q <= 126; ++q) {
      in.at(bits, 0, q + 127) = std::clamp(static_cast<float>(q) * scale, -largest, largest);
    }
    in.at(bits, 0, 0) = largest;
  }
  CHECK(same_again<int8_rows>(in, dtype::bf16));
  CHECK_FALSE(same_again<int8_rows>(in, dtype::f16));
}

TEST_CASE("9: from float32 there are more scales, and INT8 is a fixed point in float32") {
  std::vector<float> scales{0x1p-122f, 0x1.8p-126f, 0.0f, 0x1.FFFFFEp127f / 127.0f};
  for (std::uint16_t bits = 0; bits < 0x7F80; ++bits) {
    float const scale = bfloat16::from_bits(bits);
    if (scale >= 0x1p-119f && scale <= 0x1.FFFFFEp127f / 127.0f) scales.push_back(scale);
  }
  rows in(1, 255, std::ssize(scales));
  for (std::int64_t i = 0; i < in.tokens; ++i) {
    for (int q = -127; q <= 127; ++q) {
      in.at(i, 0, q + 127) = static_cast<float>(q) * scales[static_cast<std::size_t>(i)];
    }
  }
  CHECK(same_again<row_codec<int8_head>>(in, dtype::f32));
}

TEST_CASE("9: 16-bit values are fixed points where tensors hold them") {
  random_source random(test_seed());
  rows in = normal_rows(random, 2, 64, 50);
  in.at(3, 1, 7) = 1e30f;
  for (dtype const t : {dtype::f16, dtype::bf16, dtype::f32}) {
    CAPTURE(to_string(t));
    CHECK(same_again<identity<half>>(in, t) == reencodes_alike(info_of<identity<half>>(), t));
    CHECK(same_again<identity<bfloat16>>(in, t) ==
          reencodes_alike(info_of<identity<bfloat16>>(), t));
  }
}

TEST_CASE("9: others say that they are none, and k8v8's keys are none in bfloat16") {
  random_source random(test_seed());
  rows const in = normal_rows(random, 2, 64, 50);
  CHECK_FALSE(same_again<row_codec<midrise<8>>>(in, dtype::bf16));
  for_each_codec([&](auto tag) {
    using C = typename decltype(tag)::type;
    if constexpr (!C::plain && !std::is_same_v<C, row_codec<int8_head>>) {
      for (dtype const t : {dtype::f16, dtype::bf16, dtype::f32}) {
        CHECK_FALSE(reencodes_alike(info_of<C>(), t));
      }
    }
  });
  transform_view const rotated{nullptr, nullptr, 0, {1, 1}};
  CHECK_FALSE(reencodes_alike(info_of<row_codec<int8_head>>(), dtype::f32, rotated));
}

TEST_CASE("10: a stream that captures takes lists, and no staging") {
  for (int const capturing : {0, 1}) {
    loading l(pages_of(host_layout::page_first));
    staging_ring<scripted_device> ring(l.d, {l.slices.data(), 8192}, 2);
    page_mover<scripted_device> mover(l.d, ring);
    auto const targets = l.model.layers<std::byte>();
    auto const sources = l.model.layers<std::byte const>();
    l.d.capturing_stream = capturing;
    auto const store =
        mover.store(l.model.tier(), std::span(sources), {0, 3}, l.moves(), {0, 1}, {});
    auto const load = mover.load(l.model.tier(), std::span(targets), {0, 3}, l.moves(), {0, 1}, {});
    CHECK_THAT(store.sentence(),
               ContainsSubstring("captures") && ContainsSubstring("store_listed"));
    CHECK(load.code == status::unsupported);
    CHECK(l.d.launches + l.d.copies + l.d.waits == 0);

    auto* const lists = reinterpret_cast<std::int32_t*>(l.slices.data());
    lists[0] = 1;
    lists[1] = 2;
    page_lists const two{lists, lists, 2};
    CHECK_FALSE(
        store_listed(l.d, l.model.tier(), std::span(sources), {0, 3}, 8, two, capturing, {}));
    CHECK_FALSE(
        load_listed(l.d, l.model.tier(), std::span(targets), {0, 3}, 8, two, capturing, {}));
    l.d.finish();
    CHECK(l.d.launches == 2 * 2 * 3);
    CHECK(l.d.faults == "");
  }
}

}  // namespace
