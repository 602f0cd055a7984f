// SPDX-License-Identifier: Apache-2.0
// Moves that cannot be are refused in a sentence with the number that does not fit, and nothing of
// them is done.
#include "support/allocation_watch.hpp"
#include "support/catch.hpp"
#include "support/device_pool.hpp"
#include "support/index_lists.hpp"

#include <kvarts/kvarts.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using namespace kvarts::test;
using Catch::Matchers::ContainsSubstring;

using int8_rows = row_codec<int8_head>;
using by_token = codec<symmetric<3, range::narrow>, axis::token, 8>;
constexpr std::array coders = coders_of<int8_rows, by_token>();
constexpr int page_tokens = 16;
constexpr int layers = 2;

/// A tier of 5 pages and tensors of 4, filled; calls must not change them unless they are `ok`.
struct fixture {
  geometry g = uniform_geometry(layers, 2, segment_of<int8_rows>(24), segment_of<by_token>(24));
  std::vector<std::byte> keys, values;
  std::vector<device_pool> pools;
  std::array<source_layer, layers> sources;
  std::array<target_layer, layers> targets;

  fixture() {
    g.page_tokens = page_tokens;
    g.record = record_kind::page;
    keys.assign(static_cast<std::size_t>(size_bytes(g, side::keys, 5)), std::byte{0xA5});
    values.assign(static_cast<std::size_t>(size_bytes(g, side::values, 5)), std::byte{0xA5});
    random_source random(1);
    for (int i = 0; i < 2 * layers; ++i) {
      pools.emplace_back(pool_shapes()[4], 2, 24, 4 * page_tokens);
      pools.back().fill(random);
    }
    for (std::size_t l = 0; l < layers; ++l) {
      sources[l].keys[0].rows = pools[2 * l].source();
      sources[l].values[0].rows = pools[2 * l + 1].source();
      targets[l].keys[0].rows = pools[2 * l].target();
      targets[l].values[0].rows = pools[2 * l + 1].target();
    }
  }
  tier_view tier() { return {&g, 5, keys.data(), values.data(), coders}; }

  std::vector<std::byte> everything() const {
    std::vector<std::byte> all = keys;
    all.insert(all.end(), values.begin(), values.end());
    for (device_pool const& p : pools) all.insert(all.end(), p.bytes.begin(), p.bytes.end());
    return all;
  }

  /// Both directions refuse the moves so and change nothing.
  void refuses(layer_range range, page_moves const& out, page_moves const& in, status code,
               std::string const& sentence) {
    auto const before = everything();
    std::span const from = std::span<source_layer const>(sources).first(
        static_cast<std::size_t>(std::clamp(range.end - range.begin, 0, layers)));
    std::span const to = std::span<target_layer const>(targets).first(from.size());
    CAPTURE(sentence);
    problem const p = check_moves(tier(), from, range, out, true);
    CHECK(p.code == code);
    CHECK_THAT(p.sentence(), ContainsSubstring(sentence));
    CHECK_THAT(check_moves(tier(), to, range, in, false).sentence(), ContainsSubstring(sentence));
    CHECK(encode_layers(tier(), from, range, out).code == code);
    CHECK(decode_layers(tier(), to, range, in) == code);
    CHECK(everything() == before);
  }
  void refuses(page_moves const& both, status code, std::string const& sentence) {
    refuses({0, layers}, both, both, code, sentence);
  }
};

TEST_CASE("indices outside of a pool are refused, the last as the first") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t const bad :
       {std::int64_t{-1}, std::int64_t{5}, std::int64_t{1} << 32, most, -most}) {
    for (int const at : {0, 1, 2}) {
      fixture f;
      std::vector<std::int64_t> dst{0, 1, 2}, src{3, 2, 1};
      dst[static_cast<std::size_t>(at)] = bad;
      std::string const text = std::to_string(bad) + " is outside the room of";
      f.refuses({{dst.data(), src.data(), 3}, page_tokens, 1}, status::bad_page,
                "destination " + text);
      dst = {0, 1, 2};
      src[static_cast<std::size_t>(at)] = bad;
      f.refuses({{dst.data(), src.data(), 3}, page_tokens, 2}, status::bad_page, "source " + text);
    }
  }
}

TEST_CASE("a tier's last page is no page of a smaller pool") {
  fixture f;
  std::int32_t const four = 4, zero = 0;
  page_moves const out{{&zero, &four, 1}, page_tokens, 1}, in{{&four, &zero, 1}, page_tokens, 1};
  auto const before = f.everything();
  CHECK(check_moves(f.tier(), std::span<source_layer const>(f.sources), {0, layers}, out, true)
            .sentence() == "source 4 is outside the room of 4");
  CHECK(check_moves(f.tier(), std::span<target_layer const>(f.targets), {0, layers}, in, false)
            .sentence() == "destination 4 is outside the room of 4");
  CHECK(encode_layers(f.tier(), f.sources, {0, layers}, out).code == status::bad_page);
  CHECK(decode_layers(f.tier(), f.targets, {0, layers}, in) == status::bad_page);
  CHECK(f.everything() == before);
}

TEST_CASE("a destination that occurs twice is refused, wherever it is") {
  fixture f;
  index_pair<std::int32_t> const pairs[] = {{3, 0}, {1, 1}, {2, 2}, {1, 3}};
  f.refuses({{pairs, 4}, page_tokens, 2}, status::bad_page, "destination 1 occurs twice");

  constexpr std::int64_t room = std::int64_t{1} << 31;
  std::vector<std::int64_t> dst, src;
  for (std::int64_t i = 0; i < 1000; ++i) {
    dst.push_back(i * 1'000'003 % room);  // 1000003 is a prime: all differ
    src.push_back(i % 7);
  }
  CHECK_FALSE(check(index_pairs(dst.data(), src.data(), 1000), room, 7));
  for (std::size_t const at : {1u, 500u, 998u}) {
    auto twice = dst;
    twice[999] = dst[at];
    CHECK(check(index_pairs(twice.data(), src.data(), 1000), room, 7).sentence() ==
          "destination " + std::to_string(dst[at]) + " occurs twice");
  }
}

TEST_CASE("sources may repeat") {
  fixture f;
  index_pair<std::int64_t> const pairs[] = {{3, 0}, {1, 0}, {2, 0}};
  CHECK(encode_layers(f.tier(), f.sources, {0, layers}, {{pairs, 3}, page_tokens, 2}).code ==
        status::ok);
}

TEST_CASE("units, threads, layers and missing arrays") {
  fixture f;
  index_pair<std::int64_t> const pairs[] = {{0, 0}, {1, 1}};
  index_pairs const two{pairs, 2};
  f.refuses({two, 0, 1}, status::bad_tokens, "an index names 0 tokens");
  f.refuses({two, -3, 1}, status::bad_tokens, "an index names -3 tokens");
  f.refuses({two, 12, 1}, status::bad_page, "16 tokens does not hold whole units of 12");
  f.refuses({two, 32, 1}, status::bad_page, "16 tokens does not hold whole units of 32");
  f.refuses({two, 4, 1}, status::partial_group, "units of 4 tokens would cut tiles of 8");
  f.refuses({two, 16, 0}, status::unsupported, "not 0");
  f.refuses({two, 16, -1}, status::unsupported, "not -1");
  f.refuses({two, 16, 257}, status::unsupported, "not 257");
  f.refuses({{pairs, -1}, 16, 1}, status::bad_tokens, "-1 pairs");
  index_pairs const nothing{static_cast<std::int32_t const*>(nullptr), nullptr, 5};
  f.refuses({nothing, 16, 1}, status::bad_tokens, "no arrays for 5 pairs");
  for (layer_range const r : {layer_range{-1, 1}, {1, 3}, {1, 0}}) {
    f.refuses(r, {two, 16, 1}, {two, 16, 1}, status::unsupported, "there are no layers");
  }
}

TEST_CASE("tensors of other shapes, or none, and codecs without a coder") {
  std::int64_t const zero = 0;
  page_moves const one{{&zero, &zero, 1}, page_tokens, 1};
  device_pool wide(pool_shapes()[4], 2, 25, 16), tall(pool_shapes()[4], 3, 24, 16);
  {
    fixture f;
    f.sources[1].values[0].rows = wide.source();
    f.targets[1].values[0].rows = wide.target();
    f.refuses(one, status::bad_head_dim, "head_dim is 25 in the tensor and 24 in the tier");
  }
  {
    fixture f;
    f.sources[1].values[0].rows = tall.source();
    f.targets[1].values[0].rows = tall.target();
    f.refuses(one, status::bad_heads, "3 heads in the tensor and 2 in the tier");
  }
  {
    fixture f;
    f.sources[1].keys[0].rows.data = nullptr;
    f.targets[1].keys[0].rows.data = nullptr;
    f.refuses(one, status::bad_plane, "layer 1 has no memory");
  }
  {
    fixture f;
    f.g.kinds[1] = {segment_of<row_codec<midrise<3>>>(24), segment_of<by_token>(24)};
    f.g.kind_of_layer[1] = 1;
    f.refuses(one, status::unsupported, "layer 1 is kept in a codec that is not among the 2");
  }
  {
    fixture f;
    std::vector<float> center(48, 0.0f);
    center[30] = std::numeric_limits<float>::infinity();
    f.sources[1].keys[0].transform.center = center.data();
    f.sources[1].keys[0].transform.head_stride = 24;
    f.targets[1].keys[0].transform = f.sources[1].keys[0].transform;
    f.refuses(one, status::bad_transform, "head 1, channel 6");
  }
}

TEST_CASE("one thread allocates nothing") {
  fixture f;
  index_pair<std::int64_t> const pairs[] = {{3, 0}, {1, 1}, {2, 2}};
  page_moves const moves{{pairs, 3}, page_tokens, 1};
  allocation_watch const watch;
  auto const out = encode_layers(f.tier(), f.sources, {0, layers}, moves);
  auto const in = decode_layers(f.tier(), f.targets, {0, layers}, {{pairs + 1, 2}, page_tokens, 1});
  std::size_t const bytes = watch.bytes();
  CHECK(bytes == 0);
  CHECK(out.code == status::ok);
  CHECK(in == status::ok);
}

}  // namespace
