// SPDX-License-Identifier: Apache-2.0
// A prefix cache in two tiers around a toy radix tree: pages that leave the device wait in host
// memory, encoded, and come back decoded. In the same bytes a coded tier keeps twice the pages, so
// fewer tokens are computed again. Keys, values and queries are those of the sample.

#include "safetensors.hpp"

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

constexpr int layers = 2, heads = 2, head_dim = 64, query_heads = 14, tokens = 768;
constexpr int page_tokens = 32, device_pages = 28, documents = 6, shared_pages = 4;
constexpr int row = heads * head_dim, page = page_tokens * row;
constexpr std::int64_t host_bytes = 1'300'000;

/// The sample: K and V `[768, 2, 64]` and Q `[128, 14, 64]` of two layers, and K and Q of another
/// text for the calibration.
struct sample {
  tool::opened<tool::safetensors> dump, other;

  sample()
      : dump(tool::open_safetensors("examples/data/sample.safetensors")),
        other(tool::open_safetensors("examples/data/sample.calibration.safetensors")) {}

  static std::vector<half> of(tool::safetensors const& file, int layer, char const* part) {
    auto const& t = file.tensors.at("layers." + std::to_string(layer * 12) + "." + part);
    std::vector<half> values(t.bytes.size() / sizeof(half));
    std::memcpy(values.data(), t.bytes.data(), t.bytes.size());
    return values;
  }
  std::vector<half> of(int layer, char const* part) const {
    return of(dump.contents, layer, part);
  }

  transform calibration(int layer) const {
    auto const k = of(other.contents, layer, "k"), q = of(other.contents, layer, "q");
    return calibrate(make_tensor(k.data(), heads, head_dim, std::ssize(k) / row),
                     make_tensor(q.data(), query_heads, head_dim,
                                 std::ssize(q) / (query_heads * head_dim)));
  }
};

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
    tier::encode_layers(host_, source_, {0, layers}, move);
    ++total_.stored;
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
    tier::decode_layers(host_, target_, {0, layers}, moves);
    total_.restored += static_cast<int>(to.size());
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

/// The output of the last token's attention, all query heads: `key(t, kv_head)` and `value(...)`
/// are rows.
template <class Key, class Value>
std::vector<double> attend(half const* queries, Key const& key, Value const& value) {
  std::vector<double> out(query_heads * head_dim);
  for (int h = 0; h < query_heads; ++h) {
    int const kv_head = h / (query_heads / heads);
    half const* const q = queries + (127 * query_heads + h) * head_dim;
    std::vector<double> weights;
    double sum = 0.0;
    for (int t = 0; t < tokens; ++t) {
      double score = 0.0;
      for (int d = 0; d < head_dim; ++d) score += double{q[d]} * key(t, kv_head)[d];
      weights.push_back(score / 8.0);
    }
    double const highest = *std::max_element(weights.begin(), weights.end());
    for (double& w : weights) sum += w = std::exp(w - highest);
    for (int t = 0; t < tokens; ++t) {
      half const* const v = value(t, kv_head);
      for (int d = 0; d < head_dim; ++d) out[h * head_dim + d] += weights[t] / sum * v[d];
    }
  }
  return out;
}

/// How far attention on the device's pages is from that on the sample, relative to its size.
double attention_error(sample const& s, two_tier_cache& cache, std::vector<int> const& table,
                       int layer) {
  auto const k = s.of(layer, "k"), v = s.of(layer, "v"), q = s.of(layer, "q");
  auto const exact = [&](std::vector<half> const& all) {
    return [&](int t, int h) { return all.data() + t * row + h * head_dim; };
  };
  auto const cached = [&](int side) {
    return [&, side](int t, int h) {
      return cache.rows(layer, side, table[t / page_tokens]) + t % page_tokens * row + h * head_dim;
    };
  };
  auto const want = attend(q.data(), exact(k), exact(v));
  auto const have = attend(q.data(), cached(0), cached(1));
  double errors = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    errors += (have[i] - want[i]) * (have[i] - want[i]);
    squares += want[i] * want[i];
  }
  return std::sqrt(errors / squares);
}

}  // namespace
