// SPDX-License-Identifier: Apache-2.0
/// @file
/// Attention in float64 over rows in model space. It takes codes through `decode_row` only;
/// windows, partition, transforms, softmax and the joining of parts are its own.
#pragma once

#include "support/any_cache.hpp"
#include "support/rotation_matrix.hpp"
#include "support/token_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace kvarts::test {

/// Rows `[tokens, heads, head_dim]` in float64.
struct exact_rows {
  int heads = 0;
  int head_dim = 0;
  std::vector<double> numbers;

  double const* at(std::int64_t token, int head) const {
    return numbers.data() + (token * heads + head) * head_dim;
  }
};

/// The rows of K or V of a sequence as a reader must see them: coded ones through `coded_row(head,
/// position, row)` and the transform's inverse, the others as the 16-bit window type holds them.
template <class CodedRow>
exact_rows seen_rows(rows const& x, std::int64_t tokens, windows w, int step, dtype window_type,
                     transform const& t, bool coding, CodedRow coded_row) {
  exact_rows seen{x.heads, x.head_dim, {}};
  rows const held = rounded(x, window_type);
  matrix dense(t.rotate.dense != nullptr ? x.head_dim : 0);
  if (t.rotate.dense != nullptr)
    std::copy_n(t.rotate.dense, dense.entries.size(), dense.entries.begin());
  matrix const r = t.rotate.dense != nullptr
                       ? dense
                       : rotation_matrix(t.rotate.rounds, t.rotate.seed, x.head_dim);
  double const gain = t.rotate.dense != nullptr ? 1.0 : rotation_gain(t.rotate.rounds, x.head_dim);
  std::int64_t const excess = std::max<std::int64_t>(0, tokens - w.sink - w.recent);
  std::int64_t const coded_end = coding ? w.sink + excess / step * step : 0;
  std::vector<float> row(static_cast<std::size_t>(x.head_dim));
  for (std::int64_t p = 0; p < tokens; ++p) {
    for (int h = 0; h < x.heads; ++h) {
      std::vector<double> y(row.size());
      if (p < w.sink || p >= coded_end) {
        for (int d = 0; d < x.head_dim; ++d) y[static_cast<std::size_t>(d)] = held.at(p, h, d);
      } else {
        coded_row(h, p, row.data());
        y = r.transposed_times({row.begin(), row.end()});
        for (std::size_t d = 0; d < y.size(); ++d) {
          std::size_t const i = static_cast<std::size_t>(h) * y.size() + d;
          y[d] /= gain;
          if (!t.norm.empty()) y[d] *= static_cast<double>(t.norm[i]);
          if (!t.center.empty()) y[d] += static_cast<double>(t.center[i]);
        }
      }
      seen.numbers.insert(seen.numbers.end(), y.begin(), y.end());
    }
  }
  return seen;
}

struct exact_attention {
  std::vector<double> output;  ///< [query_tokens, query_heads, head_dim of V]
  std::vector<double> lse;     ///< [query_tokens, query_heads]
};

/// Softmax attention of the last `query_tokens` of `tokens` positions.
inline exact_attention attend_exactly(exact_rows const& k, exact_rows const& v, std::int64_t tokens,
                                      int query_tokens, int query_heads,
                                      std::vector<float> const& queries,
                                      attention_options const& o = {}) {
  exact_attention result;
  double const scale = o.scale != 0.0f ? static_cast<double>(o.scale) : 1.0 / std::sqrt(k.head_dim);
  for (int j = 0; j < query_tokens; ++j) {
    std::int64_t const own = tokens - query_tokens + j;
    for (int i = 0; i < query_heads; ++i) {
      int const head = static_cast<int>(std::int64_t{i} * k.heads / query_heads);
      float const* const q = queries.data() + (std::int64_t{j} * query_heads + i) * k.head_dim;
      std::vector<double> output(static_cast<std::size_t>(v.head_dim));
      std::vector<std::pair<std::int64_t, double>> scores;
      double highest = -std::numeric_limits<double>::infinity();
      for (std::int64_t p = 0; p <= own; ++p) {
        if (o.sliding_window > 0 && p <= own - o.sliding_window) continue;
        if (p < o.positions.begin || p >= o.positions.end) continue;
        double s = 0.0;
        for (int d = 0; d < k.head_dim; ++d) s += static_cast<double>(q[d]) * k.at(p, head)[d];
        s *= scale;
        if (o.soft_cap > 0.0f) s = std::tanh(s / double(o.soft_cap)) * double(o.soft_cap);
        scores.emplace_back(p, s);
        highest = std::max(highest, s);
      }
      double sum = 0.0;
      for (auto const& [p, s] : scores) sum += std::exp(s - highest);
      for (auto const& [p, s] : scores) {
        double const weight = std::exp(s - highest) / sum;
        for (std::size_t d = 0; d < output.size(); ++d) output[d] += weight * v.at(p, head)[d];
      }
      result.output.insert(result.output.end(), output.begin(), output.end());
      result.lse.push_back(scores.empty() ? highest : highest + std::log(sum));
    }
  }
  return result;
}

/// What `attention` must give for sequence 0 of a cache that holds the first `tokens` rows of `x`.
inline exact_attention expected_attention(any_scheme const& s, any_cache const& c,
                                          token_rows const& x, std::int64_t tokens,
                                          dtype window_type, transform const& t, int query_tokens,
                                          int query_heads, std::vector<float> const& queries,
                                          attention_options const& o = {}) {
  bool const coding = !s.waits || c.frozen(0);
  transform of_values;
  of_values.rotate = s.of_values;
  auto const k = seen_rows(x.k, tokens, s.window, s.key_step, window_type, t, coding,
                           [&](int h, std::int64_t p, float* row) { c.coded_key(0, h, p, row); });
  auto const v = seen_rows(x.v, tokens, s.window, s.value_step, window_type, of_values, coding,
                           [&](int h, std::int64_t p, float* row) { c.coded_value(0, h, p, row); });
  return attend_exactly(k, v, tokens, query_tokens, query_heads, queries, o);
}

}  // namespace kvarts::test
