// SPDX-License-Identifier: Apache-2.0
// A prefix cache in two tiers around a toy radix tree: pages that leave the device wait in host
// memory, encoded, and come back decoded. In the same bytes a coded tier keeps twice the pages, so
// fewer tokens are computed again. Keys, values and queries are those of the sample.

#include "sample.hpp"

#include <kvarts/kvarts.hpp>
#include <kvarts/tier/layers.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::examples;

constexpr int page_tokens = 32, device_pages = 28, documents = 6, shared_pages = 4;
constexpr int page = page_tokens * row;
constexpr std::int64_t host_bytes = 1'300'000;

/// A page of tokens in the tree, and where its keys and values are.
struct node {
  std::map<std::vector<int>, node*> next;
  int depth = 0;
  int device = -1;
  int host = -1;
  int used = 0;
};

struct counts {
  int hits = 0;  ///< pages found in either tier
  int pages = 0;
  int stored = 0;
  int restored = 0;
};

class two_tier_cache {
 public:
  two_tier_cache(tier::geometry const& g, std::span<tier::page_coder const> coders,
                 std::array<std::array<transform, 2>, layers> const& transforms)
      : geometry_(g), room_(tier::capacity_for(g, host_bytes).pages) {
    keys_.resize(static_cast<std::size_t>(tier::size_bytes(g, tier::side::keys, room_)));
    values_.resize(static_cast<std::size_t>(tier::size_bytes(g, tier::side::values, room_)));
    host_ = {&geometry_, room_, keys_.data(), values_.data(), coders};
    for (int i = 0; i < device_pages; ++i) free_device_.push_back(i);
    for (int i = 0; i < room_; ++i) free_host_.push_back(i);
    layout const m = make_tensor_layout(dtype::f16, heads, head_dim, device_pages * page_tokens,
                                        {row, head_dim, page}, page_tokens);
    for (int l = 0; l < layers; ++l) {
      for (int s = 0; s < 2; ++s) {
        memory_[l][s].resize(device_pages * page);
        auto* const data = reinterpret_cast<std::byte*>(memory_[l][s].data());
        transform_view const t = transforms[l][s].view();
        (s == 0 ? source_[l].keys : source_[l].values)[0] = {{data, dtype::f16, m, {}}, t};
        (s == 0 ? target_[l].keys : target_[l].values)[0] = {{data, dtype::f16, m, {}}, t};
      }
    }
  }
  two_tier_cache(two_tier_cache const&) = delete;

  /// Brings all pages of a request to the device: `compute(page of the request, device page)` where
  /// neither tier has one. Returns the device pages.
  template <class Compute>
  std::vector<int> request(std::vector<int> const& ids, Compute const& compute) {
    std::vector<node*> const path = walk(ids);
    std::size_t found = 0;
    while (found < path.size() && (path[found]->device >= 0 || path[found]->host >= 0)) ++found;
    total_.pages += static_cast<int>(path.size());
    total_.hits += static_cast<int>(found);
    restore({path.data(), found});
    std::vector<int> table;
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (i >= found && path[i]->device < 0) path[i]->device = take_device_page();
      if (i >= found) compute(static_cast<int>(i), path[i]->device);
      table.push_back(path[i]->device);
    }
    return table;
  }

  half* rows(int layer, int side, int device_page) {
    return memory_[layer][side].data() + device_page * page;
  }
  counts const& total() const { return total_; }
  std::int64_t room() const { return room_; }

 private:
  /// The nodes of a request, made where there are none, all of them just used.
  std::vector<node*> walk(std::vector<int> const& ids) {
    ++now_;
    std::vector<node*> path;
    node* at = &root_;
    for (auto begin = ids.begin(); begin != ids.end(); begin += page_tokens) {
      node*& next = at->next[{begin, begin + page_tokens}];
      if (next == nullptr) next = &nodes_.emplace_back();
      next->depth = at->depth + 1;
      next->used = now_;
      path.push_back(at = next);
    }
    return path;
  }

  /// The least recently used page of a tier, the deepest of a path first.
  node* oldest(int node::*place) {
    node* found = nullptr;
    for (node& n : nodes_) {
      if (n.*place >= 0 && (found == nullptr || older(n, *found))) found = &n;
    }
    return found;
  }
  static bool older(node const& a, node const& b) {
    return a.used != b.used ? a.used < b.used : a.depth > b.depth;
  }

  int take_device_page() {
    if (free_device_.empty()) {
      node& victim = *oldest(&node::device);
      if (victim.host < 0) store(victim);
      free_device_.push_back(std::exchange(victim.device, -1));
    }
    int const taken = free_device_.back();
    free_device_.pop_back();
    return taken;
  }

  // [tier]
  /// Encodes a page on its way out, all layers at once, unless the host keeps only younger ones.
  void store(node& n) {
    if (free_host_.empty()) {
      node& victim = *oldest(&node::host);
      if (!older(victim, n)) return;
      free_host_.push_back(std::exchange(victim.host, -1));
    }
    n.host = free_host_.back();
    free_host_.pop_back();
    tier::page_moves const move{{&n.host, &n.device, 1}, page_tokens};
    if (tier::encode_layers(host_, source_, {0, layers}, move).code == status::ok) ++total_.stored;
  }

  /// Decodes the pages of a request that only the host has, together.
  void restore(std::span<node* const> path) {
    std::vector<std::int32_t> to, from;
    for (node* const n : path) {
      if (n->device >= 0) continue;
      from.push_back(n->host);
      to.push_back(n->device = take_device_page());
    }
    tier::page_moves const moves{{to.data(), from.data(), std::ssize(to)}, page_tokens};
    if (tier::decode_layers(host_, target_, {0, layers}, moves) == status::ok) {
      total_.restored += static_cast<int>(to.size());
    }
  }
  // [tier]

  tier::geometry geometry_;
  std::int64_t room_;
  tier::tier_view host_;
  std::vector<std::byte> keys_, values_;
  std::vector<half> memory_[layers][2];
  std::array<tier::source_layer, layers> source_;
  std::array<tier::target_layer, layers> target_;
  std::vector<int> free_device_, free_host_;
  std::deque<node> nodes_;
  node root_;
  int now_ = 0;
  counts total_;
};

/// The sample's page that is page `i` of a document: the sample itself is document 0, all begin
/// with the same pages.
int sample_page(int document, int i) {
  return i < shared_pages ? i : (i + 3 * document) % (tokens / page_tokens);
}

std::vector<int> ids_of(int document) {
  std::vector<int> ids;
  for (int t = 0; t < tokens; ++t) {
    ids.push_back(t < shared_pages * page_tokens ? t : (document + 1) * tokens + t);
  }
  return ids;
}

/// Serves the same requests with a host tier of this preset; false when nothing came back.
template <class Preset>
bool serve(sample const& s, Preset const& preset) {
  using key_codec = typename Preset::key_codec;
  using value_codec = typename Preset::value_codec;
  static constexpr auto coders = tier::coders_of<key_codec, value_codec>();
  tier::geometry g = tier::uniform_geometry(layers, heads, tier::segment_of<key_codec>(head_dim),
                                            tier::segment_of<value_codec>(head_dim));
  g.record = tier::record_kind::page;
  g.page_tokens = page_tokens;
  g.placement = tier::host_layout::page_first_direct;
  std::array<std::array<transform, 2>, layers> transforms;
  for (int l = 0; l < layers; ++l) {
    if (needs_calibration(preset.keys)) transforms[l][0] = s.calibration(l);
    transforms[l][1].rotate = value_rotation(preset.values);
  }

  two_tier_cache cache(tier::make_geometry(g), coders, transforms);
  std::vector<int> table;
  auto const serve_one = [&](int document) {
    table = cache.request(ids_of(document), [&](int i, int device_page) {
      for (int l = 0; l < layers; ++l) {
        std::copy_n(s.keys[l].data() + sample_page(document, i) * page, page,
                    cache.rows(l, 0, device_page));
        std::copy_n(s.values[l].data() + sample_page(document, i) * page, page,
                    cache.rows(l, 1, device_page));
      }
    });
  };
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) serve_one(static_cast<int>(random() % documents));
  for (int const document : {0, 1}) serve_one(document);
  int const before = cache.total().restored;
  serve_one(0);  // the sample, whose pages the request before has driven out

  std::printf("%-6s %6d %8.3f %10lld %10lld", std::string(preset.name).c_str(),
              static_cast<int>(cache.room()),
              static_cast<double>(cache.total().hits) / cache.total().pages,
              static_cast<long long>(cache.total().stored * tier::bytes_per_page(g)),
              static_cast<long long>(cache.total().restored * tier::bytes_per_page(g)));
  for (int l = 0; l < layers; ++l) {
    auto const cached = [&](int side) {
      return [&, l, side](int t) {
        return cache.rows(l, side, table[t / page_tokens]) + t % page_tokens * row;
      };
    };
    std::printf(" %10.5f", attention_error(s, l, cached(0), cached(1)));
  }
  std::printf("\n");
  return cache.total().restored > before;
}

}  // namespace

int main() {
  sample const s;
  std::printf("host tier of %lld bytes under %d pages of %d tokens on the device\n",
              static_cast<long long>(host_bytes), device_pages, page_tokens);
  std::printf("%-6s %6s %8s %10s %10s %10s %10s\n", "preset", "pages", "hit rate", "encoded",
              "restored", "layer 0", "layer 12");
  bool ok = serve(s, preset::fp16);
  ok = serve(s, preset::int8) && ok;
  ok = serve(s, preset::k8v8) && ok;
  if (!ok) std::printf("nothing was restored\n");
  return ok ? 0 : 1;
}
