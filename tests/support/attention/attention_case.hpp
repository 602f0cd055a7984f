// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a test of attention asks for, and attention in float64 over the rows that a cache stands
/// for.
#pragma once

#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace kvarts::test {

struct attention_case {
  int heads = 2;
  int query_heads = 4;
  int key_dim = 128;
  int value_dim = 128;
  int tile_tokens = 32;
  int group = 32;
  int page_tokens = 64;
  windows window{32, 96};
  dtype window_type = dtype::f16;
  bool shifts_keys = true;  ///< keys have a center and a norm
  rotation key_rotation{1, 1};
  rotation value_rotation{1, 1};
  std::vector<std::int64_t> lengths{300};
  int query_tokens = 1;
  dtype query_type = dtype::f32;
  dtype output_type = dtype::f32;
  float scale = 0.0f;
  float soft_cap = 0.0f;
  std::int64_t sliding_window = 0;
  token_range positions{0, std::numeric_limits<std::int64_t>::max()};
  bool sink_logits = false;
  int tree_tokens = 0;  ///< 0: causal

  int sequences() const { return static_cast<int>(lengths.size()); }
  std::int64_t length(int i) const { return lengths[static_cast<std::size_t>(i)]; }
};

/// What the query at index `token` of the launch sees of a position.
inline bool sees(attention_case const& c, std::int64_t length, int token, std::uint64_t tree,
                 std::int64_t position) {
  std::int64_t const own = length - c.query_tokens + token;
  if (position < c.positions.begin || position >= c.positions.end) return false;
  if (c.sliding_window > 0 && position <= own - c.sliding_window) return false;
  if (c.tree_tokens == 0) return position <= own;
  std::int64_t const node = position - (length - c.tree_tokens);
  return node < 0 || (tree >> node & 1u) != 0;
}

struct exact_head {
  std::vector<double> output;
  double lse = -std::numeric_limits<double>::infinity();
  double largest_score = 0.0;  ///< of |q| |k| over the keys seen, scaled
  double largest_value = 0.0;  ///< of the values seen
};

/// One query head of one query token. `key(t, d)` and `value(t, d)` are rows in model space.
template <class Key, class Value, class Sees>
exact_head attend_exactly(attention_case const& c, std::int64_t length, float const* query,
                          double sink, Key&& key, Value&& value, Sees&& seen) {
  exact_head result{std::vector<double>(static_cast<std::size_t>(c.value_dim))};
  double const scale = c.scale != 0.0f ? double{c.scale} : 1.0 / std::sqrt(double(c.key_dim));
  double query_size = 0.0;
  for (int d = 0; d < c.key_dim; ++d) query_size += double{query[d]} * query[d];
  std::vector<double> scores;
  std::vector<std::int64_t> tokens;
  for (std::int64_t t = 0; t < length; ++t) {
    if (!seen(t)) continue;
    double score = 0.0, key_size = 0.0;
    for (int d = 0; d < c.key_dim; ++d) {
      score += double{query[d]} * key(t, d) * scale;
      key_size += key(t, d) * key(t, d);
    }
    result.largest_score =
        std::max(result.largest_score, std::fabs(scale) * std::sqrt(query_size * key_size));
    if (c.soft_cap > 0.0f) score = c.soft_cap * std::tanh(score / c.soft_cap);
    scores.push_back(score);
    tokens.push_back(t);
  }
  double maximum = sink;
  for (double const s : scores) maximum = std::max(maximum, s);
  if (maximum == -std::numeric_limits<double>::infinity()) return result;
  double sum = std::exp(sink - maximum);
  for (double const s : scores) sum += std::exp(s - maximum);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    double const weight = std::exp(scores[i] - maximum) / sum;
    for (int d = 0; d < c.value_dim; ++d) {
      double const v = value(tokens[i], d);
      result.output[static_cast<std::size_t>(d)] += weight * v;
      result.largest_value = std::max(result.largest_value, std::fabs(v));
    }
  }
  result.lse = maximum + std::log(sum);
  return result;
}

}  // namespace kvarts::test
