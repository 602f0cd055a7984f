// SPDX-License-Identifier: Apache-2.0
// The device's way gives the bytes of the host's, for every geometry, path and unit; runs of
// neighbours are single copies; what cannot be is refused before anything is enqueued.
#include "support/catch.hpp"
#include "support/index_lists.hpp"
#include "support/layered_model.hpp"
#include "support/scripted_device.hpp"

#include <kvarts/kvarts.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using namespace kvarts::test;
using Catch::Matchers::ContainsSubstring;
using device_type = scripted_device;

geometry mixed_layers() {
  geometry g = uniform_geometry(4, 2, segment_of<row_codec<midrise<8>>>(48),
                                segment_of<row_codec<int8_head>>(30));
  g.kinds[1] = {segment_of<identity<bfloat16>>(48), segment_of<row_codec<midrise<3>>>(30)};
  g.kind_of_layer[0] = 1;
  g.kind_of_layer[2] = 1;
  return g;
}

geometry latents() {
  return uniform_geometry(
      3, 1, {segment_of<row_codec<midrise<3>>>(128), segment_of<identity<bfloat16>>(32)}, {});
}

/// A model on a device with a ring and a mover.
struct machine {
  layered_model model;
  device_type d;
  std::vector<std::byte> slices;
  staging_ring<device_type> ring;
  page_mover<device_type> mover;

  machine(layered_model const& m, std::uint64_t seed, std::int64_t slice_bytes,
          std::int64_t copy_from_bytes)
      : model(m),
        d(seed),
        slices(static_cast<std::size_t>(3 * slice_bytes)),
        ring(d, {slices.data(), std::ssize(slices)}, 3),
        mover(d, ring, {copy_from_bytes}) {
    for (auto const& layer : model.pools) {
      for (auto const& p : layer) d.own(p.bytes);
    }
    d.own(slices);
  }
  int enqueued() const { return d.launches + d.copies + d.waits; }
};

std::vector<std::byte> all_bytes(layered_model const& m) {
  std::vector<std::byte> all = m.keys;
  all.insert(all.end(), m.values.begin(), m.values.end());
  for (auto const& layer : m.pools) {
    for (auto const& p : layer) all.insert(all.end(), p.bytes.begin(), p.bytes.end());
  }
  return all;
}

/// Whether every tensor of a model can be seen as pages of `unit` tokens.
bool divides(layered_model& m, std::int64_t unit) {
  for (auto const& layer : m.pools) {
    for (auto const& p : layer) {
      layout divided;
      if (kvarts::tier::detail::divide_tensor(p.map, unit, divided)) return false;
    }
  }
  return true;
}

void check_both_ways(geometry const& g, std::int64_t unit, std::int64_t copy_from_bytes,
                     random_source& random) {
  layered_model const start(g, random);
  machine m(start, random.bits(), 4096 + 256 * random.between(0, 60), copy_from_bytes);
  if (!divides(m.model, unit)) return;
  m.d.maps = random.between(0, 3) != 0;
  layered_model host = start;
  layer_range range{random.between(0, g.layers - 1), g.layers};
  if (random.between(0, 1) == 0) range.begin = 0;
  auto const count = static_cast<std::size_t>(range.end - range.begin);
  std::int64_t const tier_units = layered_model::tier_pages * layered_model::page_tokens / unit;
  std::int64_t const pool_units = layered_model::slots / unit;
  auto const out = index_lists::random(random, tier_units, pool_units);
  auto const in = index_lists::chosen(random, pool_units, out.dst);
  CAPTURE(range.begin, m.ring.slice_bytes(), m.d.maps, out.dst.size(), in.dst.size());

  auto const from = m.model.layers<std::byte const>(), host_from = host.layers<std::byte const>();
  std::span const some(from.data() + range.begin, count);
  REQUIRE(
      m.mover.store(m.model.tier(), some, range, {out.narrow(), unit, 1}, {0, 1}, {}).sentence() ==
      "");
  m.d.finish();
  REQUIRE(encode_layers(host.tier(), {host_from.data() + range.begin, count}, range,
                        {out.pairs(), unit, 2})
              .code == status::ok);
  CHECK(all_bytes(m.model) == all_bytes(host));

  auto const to = m.model.layers<std::byte>(), host_to = host.layers<std::byte>();
  REQUIRE(m.mover
              .load(m.model.tier(), {to.data() + range.begin, count}, range, {in.pairs(), unit, 1},
                    {2, 3}, {})
              .sentence() == "");
  m.d.finish();
  REQUIRE(decode_layers(host.tier(), {host_to.data() + range.begin, count}, range,
                        {in.pairs(), unit, 2}) == status::ok);
  CHECK(all_bytes(m.model) == all_bytes(host));
  CHECK(m.d.faults == "");
}

TEST_CASE("the device's way gives the bytes of the host's") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (geometry g : {mixed_layers(), latents()}) {
    for (host_layout const how : host_layouts) {
      for (record_kind const record : {record_kind::row, record_kind::page}) {
        g.placement = how;
        g.record = record;
        g.alignment = 16 << random.between(0, 3);
        bool const flat = how == host_layout::layer_first || how == host_layout::page_first;
        for (std::int64_t const unit : {8, 1, 4}) {
          if (unit != 8 && (!flat || record == record_kind::page)) continue;
          for (std::int64_t const copy_from :
               {std::int64_t{0}, std::int64_t{2000}, transfer_options::always_mapped}) {
            CAPTURE(to_string(how), record == record_kind::page, unit, copy_from, g.layers);
            for (int i = 0; i < 6; ++i) check_both_ways(g, unit, copy_from, random);
          }
        }
      }
    }
  }
}

TEST_CASE("neighbours on the host are one copy, and layers too where pages hold all") {
  random_source random(1);
  for (auto const& [how, copies] : {std::pair{host_layout::layer_first, 2 * 2 * 4},
                                    {host_layout::page_first, 2 * 2},
                                    {host_layout::page_first_direct, 2 * 2},
                                    {host_layout::page_head, 2 * 2}}) {
    geometry g = mixed_layers();
    g.placement = how;
    machine m(layered_model(g, random), 1, 1 << 18, 0);
    // Pages 2, 3, 4 and then 0: two runs, K and V.
    std::vector<std::int64_t> const dst{2, 3, 4, 0}, src{0, 1, 4, 2};
    auto const from = m.model.layers<std::byte const>();
    CAPTURE(to_string(how));
    CHECK_FALSE(m.mover.store(m.model.tier(), std::span(from), {0, 4},
                              {{dst.data(), src.data(), 4}, 8, 1}, {0, 1}, {}));
    CHECK(m.d.copies == copies);
    m.d.finish();
  }
}

TEST_CASE("a device's threshold decides between copies and mapped memory") {
  random_source random(1);
  geometry g = uniform_geometry(2, 2, segment_of<row_codec<int8_head>>(64),
                                segment_of<row_codec<int8_head>>(64));
  // A page of a layer: 8 tokens, 2 heads of 64 bytes and a scale of 2, padded to 256 bytes a token.
  constexpr std::int64_t page = 8 * 256;
  std::vector<std::int64_t> const together{1, 2, 3, 4}, apart{5, 3, 1, 0}, src{0, 1, 2, 3};
  for (auto const& [dst, mean] : {std::pair{together, 4 * page}, {apart, page}}) {
    for (auto const& [threshold, copies] : {std::pair{mean, true}, {mean + 1, false}}) {
      machine m(layered_model(g, random), 1, 1 << 16, threshold);
      auto const from = m.model.layers<std::byte const>();
      CHECK_FALSE(m.mover.store(m.model.tier(), std::span(from), {0, 2},
                                {{dst.data(), src.data(), 4}, 8, 1}, {0, 1}, {}));
      CHECK((m.d.copies > 0) == copies);
      m.d.maps = false;  // then there are only copies
      CHECK_FALSE(m.mover.store(m.model.tier(), std::span(from), {0, 2},
                                {{dst.data(), src.data(), 4}, 8, 1}, {0, 1}, {}));
      CHECK(m.d.copies > 0);
      m.d.finish();
      CHECK(m.d.faults == "");
    }
  }
}

TEST_CASE("moves that cannot be enqueue nothing") {
  random_source random(1);
  geometry g = mixed_layers();
  g.placement = host_layout::page_first_direct;
  auto const refused = [&](std::int64_t slice_bytes, std::int64_t page, std::int64_t unit) {
    machine m(layered_model(g, random), 1, slice_bytes, 0);
    index_lists const pairs({page}, {0}), back({0}, {page});
    auto const from = m.model.layers<std::byte const>();
    auto const to = m.model.layers<std::byte>();
    std::string const out =
        m.mover.store(m.model.tier(), std::span(from), {0, 4}, {pairs.pairs(), unit, 1}, {0, 1}, {})
            .sentence();
    std::string const in =
        m.mover.load(m.model.tier(), std::span(to), {0, 4}, {back.pairs(), unit, 1}, {0, 1}, {})
            .sentence();
    CHECK(m.enqueued() == 0);
    return out + "|" + in;
  };
  CHECK(refused(1 << 16, 6, 8) ==
        "destination 6 is outside the room of 6|source 6 is outside the room of 6");
  CHECK_THAT(refused(512, 0, 8),
             ContainsSubstring("a slice of 512 bytes does not hold one page of"));
  CHECK_THAT(refused(1 << 16, 0, 4), ContainsSubstring("do not move in units of 4"));
  CHECK_THAT(refused(0, 0, 8), ContainsSubstring("no staging"));
  g.kinds[1].keys = segment_of<row_codec<midrise<4>>>(48);
  CHECK_THAT(refused(1 << 16, 0, 8), ContainsSubstring("no launch has codecs of 4 bits"));
}

TEST_CASE("a device that refuses something is told of, and asked for nothing more") {
  random_source random(1);
  geometry const g = mixed_layers();
  for (int calls = 0;; ++calls) {
    machine m(layered_model(g, random), 1, 1 << 14, 0);
    index_lists const pairs({0, 2}, {0, 1});
    auto const from = m.model.layers<std::byte const>();
    m.d.calls_left = calls;
    problem const p =
        m.mover.store(m.model.tier(), std::span(from), {0, 4}, {pairs.pairs(), 8, 1}, {0, 1}, {});
    m.d.calls_left = 1 << 20;
    m.d.finish();
    if (!p) {
      CHECK(calls > 20);
      break;
    }
    CHECK(p.code == status::device_failed);
  }
}

}  // namespace
