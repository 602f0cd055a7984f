// SPDX-License-Identifier: Apache-2.0
// All layers at once give what their segments give one by one: layers of different codecs, MLA's
// two segments, transforms, any thread count, parts of the layers.
#include "support/catch.hpp"
#include "support/index_lists.hpp"
#include "support/layered_model.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using namespace kvarts::test;

using int8_rows = row_codec<int8_head>;
using rows8 = row_codec<midrise<8>>;
using rows3 = row_codec<midrise<3>>;
using plain = identity<bfloat16>;
using model = layered_model;
constexpr int page_tokens = model::page_tokens;
constexpr int tier_pages = model::tier_pages;
constexpr int slots = model::slots;

/// One segment of a layer by `encode_pages`, whatever its codec.
template <class... Codecs>
void encode_segment(model& m, std::vector<std::byte>& memory, side s, int layer, int part,
                    plain_segment<std::byte const> const& from, page_moves const& moves) {
  layout const map = make_layout(m.g, s, layer, tier_pages, part);
  auto const name = std::string_view(m.g.rows(s, layer)[part].codec.name);
  int served = 0;
  auto const attempt = [&]<class C>(std::type_identity<C>) {
    if (name != std::string_view(info_of<C>().name)) return;
    ++served;
    REQUIRE(encode_pages(view<C>{memory.data(), map, {}}, from.rows, moves, from.transform).code ==
            status::ok);
  };
  (attempt(std::type_identity<Codecs>{}), ...);
  REQUIRE(served == 1);
}

void check_model(geometry const& g, random_source& random) {
  model m(g, random);
  auto const sources = m.layers<std::byte const>();
  auto const lists = index_lists::random(random, tier_pages, slots / page_tokens);
  std::vector<std::byte> keys = m.keys, values = m.values;
  int const first = random.between(0, g.layers - 1), last = random.between(first, g.layers - 1);
  layer_range const range{first, last + 1};
  page_moves const moves{lists.pairs(), page_tokens, random.between(1, 7)};
  CAPTURE(first, last, moves.threads, lists.dst.size());
  std::span const some(sources.data() + first, static_cast<std::size_t>(last - first + 1));
  REQUIRE(encode_layers(m.tier(), some, range, moves).code == status::ok);
  for (int l = first; l <= last; ++l) {
    for (side const s : {side::keys, side::values}) {
      for (int part = 0; part < g.rows(s, l).count; ++part) {
        encode_segment<int8_rows, rows8, rows3, plain>(
            m, s == side::keys ? keys : values, s, l, part,
            sources[static_cast<std::size_t>(l)].at(s, part), moves);
      }
    }
  }
  CHECK(m.keys == keys);
  CHECK(m.values == values);

  // Back to other slots: what one thread writes, all write.
  model other = m;
  auto const in = index_lists::chosen(random, slots / page_tokens, lists.dst);
  auto const targets = m.layers<std::byte>(), plain_targets = other.layers<std::byte>();
  std::span const some_targets(targets.data() + first, some.size());
  REQUIRE(decode_layers(m.tier(), some_targets, range, {in.narrow(), page_tokens, 5}) ==
          status::ok);
  for (int l = first; l <= last; ++l) {
    std::span const one(plain_targets.data() + l, 1);
    REQUIRE(decode_layers(other.tier(), one, {l, l + 1}, {in.pairs(), page_tokens, 1}) ==
            status::ok);
  }
  for (std::size_t l = 0; l < m.pools.size(); ++l) {
    for (std::size_t i = 0; i < m.pools[l].size(); ++i) {
      CHECK(m.pools[l][i].bytes == other.pools[l][i].bytes);
    }
  }
}

template <class F>
void for_each_arrangement(geometry g, F const& f) {
  for (host_layout const how : host_layouts) {
    for (record_kind const record : {record_kind::row, record_kind::page}) {
      g.placement = how;
      g.record = record;
      CAPTURE(to_string(how), record == record_kind::page);
      for (int i = 0; i < 4; ++i) f(g);
    }
  }
}

TEST_CASE("layers of different codecs") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  geometry g = uniform_geometry(5, 3, segment_of<rows8>(48), segment_of<int8_rows>(30));
  g.kinds[1] = {segment_of<plain>(48), segment_of<plain>(30)};
  g.kinds[2] = {segment_of<rows3>(40), segment_of<rows8>(40)};
  g.kind_of_layer[0] = 1;
  g.kind_of_layer[3] = 2;
  for_each_arrangement(g, [&](geometry const& one) { check_model(one, random); });
}

TEST_CASE("MLA: a coded latent, RoPE channels in 16 bits, no values") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  geometry const g = uniform_geometry(3, 1, {segment_of<rows3>(512), segment_of<plain>(64)}, {});
  for_each_arrangement(g, [&](geometry const& one) { check_model(one, random); });
}

TEST_CASE("threads share one page of many layers, and one layer of many pages") {
  auto const seed = test_seed();
  CAPTURE(seed);
  random_source random(seed);
  for (int const layers : {1, 7}) {
    geometry const g =
        uniform_geometry(layers, 2, segment_of<int8_rows>(64), segment_of<int8_rows>(64));
    for (int i = 0; i < 20; ++i) check_model(g, random);
  }
}

}  // namespace
