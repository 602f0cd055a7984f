// SPDX-License-Identifier: Apache-2.0
/// @file
/// A model whose layers have different codecs, segments, pools and transforms, and a tier for it.
#pragma once

#include "support/device_pool.hpp"

#include <kvarts/quantizer.hpp>
#include <kvarts/tier/layers.hpp>

#include <cstdint>
#include <vector>

namespace kvarts::test {

/// A model's pools and a tier for them.
struct layered_model {
  static constexpr int page_tokens = 8;
  static constexpr int tier_pages = 6;
  static constexpr int slots = 5 * page_tokens;

  tier::geometry g;
  std::vector<std::vector<device_pool>> pools;  ///< by layer: segments of keys, then of values
  std::vector<transform_view> transforms;       ///< by layer, of the first segment of keys
  std::vector<std::byte> keys, values;

  layered_model(tier::geometry const& of, random_source& random) : g(of) {
    g.page_tokens = page_tokens;
    keys.assign(static_cast<std::size_t>(size_bytes(g, tier::side::keys, tier_pages)),
                std::byte{0xA5});
    values.assign(static_cast<std::size_t>(size_bytes(g, tier::side::values, tier_pages)),
                  std::byte{0xA5});
    for (int l = 0; l < g.layers; ++l) {
      pools.emplace_back();
      transforms.push_back({nullptr, nullptr, 0, {l % 3, static_cast<std::uint64_t>(l) + 1}});
      for (tier::side const s : {tier::side::keys, tier::side::values}) {
        for (int part = 0; part < g.rows(s, l).count; ++part) {
          auto const& shape = pool_shapes()[static_cast<std::size_t>(random.between(0, 3))];
          pools.back().emplace_back(shape, g.heads, g.rows(s, l)[part].head_dim, slots);
          pools.back().back().fill(random);
        }
      }
    }
  }

  tier::tier_view tier() {
    static constexpr auto coders = tier::coders_of<row_codec<int8_head>, row_codec<midrise<8>>,
                                                   row_codec<midrise<3>>, identity<bfloat16>>();
    return {&g, tier_pages, keys.data(), values.data(), coders};
  }

  template <class Byte>
  std::vector<tier::plain_layer<Byte>> layers() {
    std::vector<tier::plain_layer<Byte>> all(pools.size());
    for (std::size_t l = 0; l < all.size(); ++l) {
      std::size_t next = 0;
      for (tier::side const s : {tier::side::keys, tier::side::values}) {
        for (int part = 0; part < g.rows(s, static_cast<int>(l)).count; ++part) {
          auto& to =
              (s == tier::side::keys ? all[l].keys : all[l].values)[static_cast<std::size_t>(part)];
          to.rows = pools[l][next++].target();
        }
      }
      all[l].keys[0].transform = transforms[l];
    }
    return all;
  }
};

}  // namespace kvarts::test
