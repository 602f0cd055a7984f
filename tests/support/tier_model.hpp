// SPDX-License-Identifier: Apache-2.0
/// @file
/// A model's pools, whose pages hold numbered contents, and a tier for them.
#pragma once

#include "support/device_pool.hpp"
#include "support/page_coders.hpp"
#include "support/scripted_device.hpp"

#include <kvarts/tier/layers.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

namespace kvarts::test {

/// What readers saw: the rows of a page, by layer, side and place in the list of pages.
using page_contents = std::vector<std::vector<std::vector<rows>>>;

/// Layers of K and V with one segment each.
class tier_model {
 public:
  static constexpr int pool_pages = 17;
  static constexpr int tier_pages = 9;

  tier::geometry g;
  std::vector<device_pool> pools;  ///< K of layer 0, V of layer 0, K of layer 1, ...
  std::vector<std::byte> keys, values, keys_copy, values_copy;

  tier_model(tier::geometry const& of, random_source& random) : g(of), salt_(random.bits()) {
    for (int l = 0; l < g.layers; ++l) {
      for (tier::side const s : {tier::side::keys, tier::side::values}) {
        pool_shape const shape{"", dtype::bf16, (l % 2) * g.page_tokens, order::token_major, l};
        pools.emplace_back(shape, g.heads, g.rows(s, l)[0].head_dim,
                           std::int64_t{pool_pages} * g.page_tokens);
      }
    }
    keys.assign(static_cast<std::size_t>(size_bytes(g, tier::side::keys, tier_pages)),
                std::byte{0xA5});
    values.assign(static_cast<std::size_t>(size_bytes(g, tier::side::values, tier_pages)),
                  std::byte{0xA5});
    keys_copy = keys;
    values_copy = values;
  }

  tier::tier_view tier() { return {&g, tier_pages, keys.data(), values.data(), {}}; }

  template <class Byte>
  std::vector<tier::plain_layer<Byte>> layers() {
    std::vector<tier::plain_layer<Byte>> all(static_cast<std::size_t>(g.layers));
    for (int l = 0; l < g.layers; ++l) {
      auto& to = all[static_cast<std::size_t>(l)];
      to.keys[0] = {pool(l, tier::side::keys).target(), transform_of(tier::side::keys)};
      to.values[0] = {pool(l, tier::side::values).target(), transform_of(tier::side::values)};
    }
    return all;
  }

  // Work on a stream; pages in any order.

  void write(scripted_device& d, int stream, std::vector<std::int64_t> const& pages, int content) {
    d.run(stream, static_cast<int>(pages.size()), [this, pages, content](int i) {
      for_each_pool([&](int l, tier::side s) {
        std::int64_t const page = pages[static_cast<std::size_t>(i)];
        pool(l, s).scatter(content_of(content, page, l, s), page * g.page_tokens);
      });
    });
  }
  void read_layer(scripted_device& d, int stream, std::vector<std::int64_t> const& pages, int layer,
                  page_contents& seen) {
    seen.resize(static_cast<std::size_t>(g.layers));
    auto& to = seen[static_cast<std::size_t>(layer)];
    to.assign(2, std::vector<rows>(pages.size(), rows(1, 1, 0)));
    d.run(stream, static_cast<int>(pages.size()), [this, pages, layer, &to](int i) {
      for (tier::side const s : {tier::side::keys, tier::side::values}) {
        to[static_cast<std::size_t>(s)][static_cast<std::size_t>(i)] = pool(layer, s).gathered(
            pages[static_cast<std::size_t>(i)] * g.page_tokens, g.page_tokens);
      }
    });
  }
  void read_all(scripted_device& d, int stream, std::vector<std::int64_t> const& pages,
                page_contents& seen) {
    seen.resize(static_cast<std::size_t>(g.layers));
    for (int l = 0; l < g.layers; ++l) read_layer(d, stream, pages, l, seen);
  }
  void copy_tier(scripted_device& d, int stream) {
    d.run(stream, 1, [this](int) { copy_tier_now(); });
  }

  // What must be there.

  void copy_tier_now() {
    keys_copy = keys;
    values_copy = values;
  }

  /// The copy of the tier has, at `host[i]`, the codes of content `content` of page `from[i]`.
  bool tier_copy_has(std::vector<std::int64_t> const& host, std::vector<std::int64_t> const& from,
                     int content) {
    bool same = true;
    for (std::size_t i = 0; i < host.size(); ++i) {
      for_each_pool([&](int l, tier::side s) {
        auto const& memory = s == tier::side::keys ? keys_copy : values_copy;
        layout const map = tier::plan_layout(g, s, l, tier_pages);
        rows const found = decoded(memory.data(), map, host[i], s);
        same = same && found.values == coded(content, from[i], l, s).values;
      });
    }
    return same;
  }
  bool holds_plain(page_contents const& seen, std::vector<std::int64_t> const& pages, int content) {
    return holds(seen, pages, [&](std::int64_t page, int l, tier::side s) {
      return content_of(content, page, l, s);
    });
  }
  /// What is left of the content of pages `from` after coding.
  bool holds_coded(page_contents const& seen, std::vector<std::int64_t> const& from, int content) {
    return holds(seen, from, [&](std::int64_t page, int l, tier::side s) {
      return coded(content, page, l, s);
    });
  }

 private:
  device_pool& pool(int layer, tier::side s) {
    return pools[static_cast<std::size_t>(2 * layer + static_cast<int>(s))];
  }
  transform_view transform_of(tier::side s) const {
    return {nullptr, nullptr, 0, {s == tier::side::keys ? 1 : 0, 1}};
  }

  template <class F>
  void for_each_pool(F const& f) {
    for (int l = 0; l < g.layers; ++l) {
      f(l, tier::side::keys);
      f(l, tier::side::values);
    }
  }

  template <class F>
  bool holds(page_contents const& seen, std::vector<std::int64_t> const& pages, F const& expected) {
    bool same = true;
    for_each_pool([&](int l, tier::side s) {
      auto const& found = seen[static_cast<std::size_t>(l)][static_cast<std::size_t>(s)];
      for (std::size_t i = 0; i < pages.size(); ++i) {
        same = same && found[i].values == expected(pages[i], l, s).values;
      }
    });
    return same;
  }

  /// Numbers that bfloat16 holds.
  rows content_of(int content, std::int64_t page, int layer, tier::side s) {
    rows r(g.heads, g.rows(s, layer)[0].head_dim, g.page_tokens);
    random_source random(
        salt_ +
        static_cast<std::uint64_t>(((content * 64 + page) * 64 + layer) * 2 + static_cast<int>(s)));
    for (float& x : r.values) x = static_cast<float>(random.between(-127, 127)) / 64.0f;
    return r;
  }

  rows decoded(std::byte const* memory, layout const& map, std::int64_t page, tier::side s) {
    rows out(g.heads, map.head_dim, g.page_tokens);
    plain_memory to = contiguous_memory(out, dtype::bf16);
    tier::decode_launch l{codec_of(s), memory,  map, nullptr,
                          to.target(), nullptr, 1,   transform_of(s)};
    l.plain.map.page_tokens = g.page_tokens;
    find_page_coder(l.codec)->decode(l, static_cast<std::int32_t>(page), 0);
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      out.values[i] = bfloat16::from_bits(load_unaligned<std::uint16_t>(to.bytes.data() + 2 * i));
    }
    return out;
  }

  /// A content that was encoded and decoded, by itself.
  rows coded(int content, std::int64_t page, int layer, tier::side s) {
    rows const in = content_of(content, page, layer, s);
    tier::geometry one = g;  // layers are alike
    one.layers = 1;
    layout const map = tier::plan_layout(one, s, 0, 1);
    std::vector<std::byte> memory(static_cast<std::size_t>(map.size_bytes()));
    plain_memory const from = contiguous_memory(in, dtype::bf16);
    tier::encode_launch l{codec_of(s),   memory.data(), map, nullptr,
                          from.source(), nullptr,       1,   transform_of(s)};
    l.plain.map.page_tokens = g.page_tokens;
    find_page_coder(l.codec)->encode(l, 0, 0);
    return decoded(memory.data(), map, 0, s);
  }
  codec_info codec_of(tier::side s) const { return g.rows(s, 0)[0].codec; }

  std::uint64_t salt_;
};

}  // namespace kvarts::test
