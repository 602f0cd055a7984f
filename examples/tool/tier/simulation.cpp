// SPDX-License-Identifier: Apache-2.0
#include "tier/simulation.hpp"

#include <algorithm>
#include <cstddef>

namespace kvarts::tool {

namespace {

constexpr std::int64_t batch = 2;  ///< requests that see nothing of each other's first prefixes

/// Sums over a range of positions of numbers that change: a Fenwick tree.
class range_sums {
 public:
  explicit range_sums(std::size_t size) : nodes_(size + 1, 0) {}

  void add(std::int64_t position, std::int64_t value) {
    for (auto i = static_cast<std::size_t>(position) + 1; i < nodes_.size(); i += i & (~i + 1)) {
      nodes_[i] += value;
    }
  }

  /// Of the positions before `end`.
  std::int64_t before(std::int64_t end) const {
    std::int64_t sum = 0;
    for (auto i = static_cast<std::size_t>(end); i > 0; i -= i & (~i + 1)) sum += nodes_[i];
    return sum;
  }

 private:
  std::vector<std::int64_t> nodes_;
};

/// When a prefix was used: positions in the workload, -1 for never.
struct prefix_state {
  std::int64_t last = -1;
  std::int64_t first_counted = -1;
  std::int64_t tokens = 0;  ///< at the last use
};

class prefix_cache {
 public:
  prefix_cache(workload const& w, cache_room room)
      : room_(room),
        prefixes_(w.prefix_count),
        last_uses_(w.requests.size()),
        new_tokens_(w.requests.size()) {}

  void serve(request const& r) {
    forget_last_uses(r);
    std::int64_t const found = r.counted ? count(r) : 0;
    for (prefix_use const& p : r.prefixes) touch(p, r.counted);
    new_tokens_.add(now_, r.new_tokens);
    std::int64_t computed = r.new_tokens - found;
    for (prefix_use const& p : r.prefixes) computed += p.tokens;
    outcome_.encoded_tokens += computed;
    ++now_;
  }

  outcome const& result() const { return outcome_; }

 private:
  /// The request's own prefixes do not stand between it and them.
  void forget_last_uses(request const& r) {
    for (prefix_use const& p : r.prefixes) {
      prefix_state const& state = prefixes_[p.id];
      if (state.last >= 0) last_uses_.add(state.last, -state.tokens);
    }
  }

  /// Tokens touched since the last use of a prefix.
  std::int64_t distance(prefix_state const& state) const {
    std::int64_t const after = state.last + 1;
    return last_uses_.before(now_) - last_uses_.before(after) + new_tokens_.before(now_) -
           new_tokens_.before(after);
  }

  bool is_visible(prefix_state const& state) const {
    return state.first_counted < 0 || now_ - state.first_counted > batch;
  }

  /// Counts what the request finds; returns the tokens of its prefixes that it need not compute.
  std::int64_t count(request const& r) {
    std::int64_t found = 0;
    std::size_t parts = 0;
    for (prefix_use const& p : r.prefixes) {
      prefix_state const& state = prefixes_[p.id];
      if (state.last < 0 || !is_visible(state)) break;
      std::int64_t const touched = distance(state);
      if (touched > room_.tokens) break;
      if (touched > room_.device_tokens) outcome_.restored_tokens += p.tokens;
      found += p.tokens;
      ++parts;
    }
    bool const whole = r.repeated && parts == r.prefixes.size();
    outcome_.hit_tokens += whole ? r.prompt_tokens : static_cast<double>(found);
    outcome_.hits += found > 0 ? 1 : 0;
    outcome_.prompt_tokens += r.prompt_tokens;
    ++outcome_.requests;
    return found;
  }

  void touch(prefix_use const& p, bool counted) {
    prefix_state& state = prefixes_[p.id];
    if (counted && state.last < 0) state.first_counted = now_;
    state.last = now_;
    state.tokens = p.tokens;
    last_uses_.add(now_, p.tokens);
  }

  cache_room room_;
  std::vector<prefix_state> prefixes_;
  range_sums last_uses_;   ///< tokens of each prefix at the position of its last use
  range_sums new_tokens_;  ///< of each request
  std::int64_t now_ = 0;
  outcome outcome_;
};

}  // namespace

outcome simulate(workload const& w, cache_room room) {
  prefix_cache cache(w, room);
  for (request const& r : w.requests) cache.serve(r);
  return cache.result();
}

}  // namespace kvarts::tool
