// SPDX-License-Identifier: Apache-2.0
// A decode loop with InnerQ's windows: 16-bit prefill, then one token at a time. Tokens that leave
// the window are coded; attention reads codes and windows together.

#include <kvarts/kvarts.hpp>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace {

constexpr int prefill = 300, steps = 200, query_heads = 8, heads = 2, head_dim = 64;

std::vector<kvarts::half> random_rows(std::mt19937& random, int tokens) {
  std::normal_distribution<float> normal;
  std::vector<kvarts::half> rows(tokens * heads * head_dim);
  for (auto& x : rows) x = kvarts::half(normal(random));
  return rows;
}

}  // namespace

int main() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto const keys = random_rows(random, prefill + steps);
  auto const values = random_rows(random, prefill + steps);
  auto const rows = [](std::vector<kvarts::half> const& all, int begin, int count) {
    return kvarts::make_tensor(all.data() + begin * heads * head_dim, heads, head_dim, count);
  };
  double worst = 0.0;

  // [decode loop]
  kvarts::cache cache(kvarts::preset::innerq_base_wide, /*room=*/1024,
                      {.heads = heads, .key_dim = head_dim, .prefill_room = prefill});
  cache.append(rows(keys, 0, prefill), rows(values, 0, prefill));
  cache.freeze(kvarts::innerq_norm(rows(keys, 0, prefill), prefill));  // codes what is due

  std::vector<float> query(query_heads * head_dim), output(query.size()), lse(query_heads);
  for (int t = prefill; t < prefill + steps; ++t) {
    cache.append(rows(keys, t, 1), rows(values, t, 1));
    for (float& q : query) q = normal(random);
    kvarts::attention(cache.view(), 1, query_heads, query.data(), output.data(), lse.data());
    // [decode loop]

    double exact_sum = 0.0;  // the exact log-sum-exp of query head 0
    for (int i = 0; i <= t; ++i) {
      double score = 0.0;
      for (int d = 0; d < head_dim; ++d) score += double{query[d]} * keys[i * heads * head_dim + d];
      exact_sum += std::exp(score / std::sqrt(double{head_dim}));
    }
    worst = std::max(worst, std::fabs(lse[0] - std::log(exact_sum)));
  }
  auto const view = cache.view();
  std::printf("%d tokens: %d sinks, %d coded keys, %d coded values, the rest recent; %d KiB\n",
              static_cast<int>(view.tokens()), static_cast<int>(view.key_parts.sinks),
              static_cast<int>(view.key_parts.coded()), static_cast<int>(view.value_parts.coded()),
              static_cast<int>(cache.memory_bytes() / 1024));
  std::printf("largest error of the log-sum-exp over %d steps: %.3f\n", steps, worst);
  return worst < 0.2 ? 0 : 1;
}
