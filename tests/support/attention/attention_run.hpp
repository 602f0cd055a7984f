// SPDX-License-Identifier: Apache-2.0
/// @file
/// Inputs and outputs of attention in host memory, and their comparison with float64.
#pragma once

#include "support/attention/coded_cache.hpp"
#include "support/catch.hpp"
#include "support/misses.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kvarts::test {

/// Inputs and outputs of one launch.
struct attention_run {
  std::vector<std::byte> queries;
  std::vector<float> exact_queries;
  std::vector<float> sinks;
  std::vector<std::uint64_t> trees;
  std::vector<std::byte> output;
  std::vector<float> lse;

  attention_run(attention_case const& c, random_source& random) {
    auto const rows = static_cast<std::size_t>(c.sequences() * c.query_tokens * c.query_heads);
    auto const size = static_cast<std::size_t>(element_size(c.query_type));
    queries.resize(rows * static_cast<std::size_t>(c.key_dim) * size);
    for (std::size_t i = 0; i < rows * static_cast<std::size_t>(c.key_dim); ++i) {
      auto q = static_cast<float>(random.normal());
      if (c.query_type == dtype::f16) q = half(q);
      if (c.query_type == dtype::bf16) q = bfloat16(q);
      exact_queries.push_back(q);
      store(queries.data() + i * size, c.query_type, q);
    }
    for (int h = 0; h < c.query_heads; ++h) sinks.push_back(static_cast<float>(random.normal()));
    for (int i = 0; i < c.sequences() * c.query_tokens; ++i) {
      // Every query sees itself.
      int const own = c.tree_tokens - c.query_tokens + i % c.query_tokens;
      trees.push_back(random.bits() | (c.tree_tokens > 0 ? std::uint64_t{1} << own : 0));
    }
    output.resize(rows * static_cast<std::size_t>(c.value_dim) *
                  static_cast<std::size_t>(element_size(c.output_type)));
    lse.resize(rows);
  }

  cuda::attention_request request(attention_case const& c) {
    cuda::attention_request r;
    r.queries = queries.data();
    r.query_type = c.query_type;
    r.output = output.data();
    r.output_type = c.output_type;
    r.lse = lse.data();
    r.query_tokens = c.query_tokens;
    r.query_heads = c.query_heads;
    r.scale = c.scale;
    r.soft_cap = c.soft_cap;
    r.sliding_window = c.sliding_window;
    r.positions = c.positions;
    r.sink_logits = c.sink_logits ? sinks.data() : nullptr;
    r.tree_masks = c.tree_tokens > 0 ? trees.data() : nullptr;
    r.tree_tokens = c.tree_tokens;
    return r;
  }

  double at(attention_case const& c, std::size_t index) const {
    std::byte const* const from =
        output.data() + index * static_cast<std::size_t>(element_size(c.output_type));
    if (c.output_type == dtype::f32) return load_unaligned<float>(from);
    auto const bits = load_unaligned<std::uint16_t>(from);
    if (c.output_type == dtype::f16) return half::from_bits(bits);
    return bfloat16::from_bits(bits);
  }
};

/// Compares outputs and log-sum-exps with float64, head by head.
template <class Cache>
void compare_attention(Cache const& cache, attention_run const& run, misses& found) {
  attention_case const& c = cache.shape;
  double const rounding = c.output_type == dtype::f32   ? 0.0
                          : c.output_type == dtype::f16 ? 0x1p-10
                                                        : 0x1p-7;
  int const shared = c.query_heads / c.heads;
  std::size_t row = 0;
  for (int i = 0; i < c.sequences(); ++i) {
    for (int j = 0; j < c.query_tokens; ++j) {
      for (int h = 0; h < c.query_heads; ++h, ++row) {
        std::uint64_t const tree = run.trees[static_cast<std::size_t>(i * c.query_tokens + j)];
        rows const& k = cache.keys.seen(i);
        rows const& v = cache.values.seen(i);
        auto const exact = attend_exactly(
            c, c.length(i), run.exact_queries.data() + row * static_cast<std::size_t>(c.key_dim),
            c.sink_logits ? double{run.sinks[static_cast<std::size_t>(h)]}
                          : -std::numeric_limits<double>::infinity(),
            [&](std::int64_t t, int d) { return double{k.at(t, h / shared, d)}; },
            [&](std::int64_t t, int d) { return double{v.at(t, h / shared, d)}; },
            [&](std::int64_t t) { return sees(c, c.length(i), j, tree, t); });
        std::string const place = "sequence " + std::to_string(i) + ", query " + std::to_string(j) +
                                  ", head " + std::to_string(h);
        // Queries and weights are halfs.
        double const score_error = 0x1p-11 * exact.largest_score;
        double const bound = (2.0 * score_error + 0x1p-10) * exact.largest_value;
        for (int d = 0; d < c.value_dim; ++d) {
          double const expected = exact.output[static_cast<std::size_t>(d)];
          std::size_t const at = row * static_cast<std::size_t>(c.value_dim);
          found.compare(run.at(c, at + static_cast<std::size_t>(d)), expected,
                        bound + rounding * std::fabs(expected),
                        place + ", channel " + std::to_string(d));
        }
        double const lse = run.lse[row];
        if (exact.lse == lse) continue;  // both minus infinity
        found.compare(lse, exact.lse, score_error + 1e-5 * std::fabs(exact.lse) + 1e-6,
                      place + ", lse");
      }
    }
  }
}

/// Requires outputs and log-sum-exps to be those of float64.
template <class Cache>
void require_exact(Cache const& cache, attention_run const& run) {
  misses found;
  compare_attention(cache, run, found);
  found.require_none();
}

}  // namespace kvarts::test
