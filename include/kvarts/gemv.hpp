// SPDX-License-Identifier: Apache-2.0
/// @file
/// The host reference products on codes: q.K^T and p.V for one token of queries, with GQA.
#pragma once

#include <kvarts/decode.hpp>

#include <algorithm>
#include <cmath>

namespace kvarts {

namespace detail {

/// KV heads must divide query heads: query head i reads KV head i / (query_heads / heads).
constexpr bool divides_heads(int heads, int query_heads) noexcept {
  return query_heads > 0 && query_heads % heads == 0;
}

/// Dot product with 16 running sums of type `Sum`, then a fold of them.
template <class Sum = float>
Sum dot(float const* a, float const* b, int n) noexcept {
  constexpr int lanes = 16;
  Sum sums[lanes] = {};
  int i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int k = 0; k < lanes; ++k) sums[k] += Sum(a[i + k]) * Sum(b[i + k]);
  }
  for (int k = 0; i + k < n; ++k) sums[k] += Sum(a[i + k]) * Sum(b[i + k]);
  return fold(sums, std::integral_constant<int, lanes>{});
}

}  // namespace detail

/// Scores of folded queries with coded keys: for query head i and token t of the range
/// `scores[i, t - begin]` = q'[i] . k^[t] + bias[i], `scores` `[query_heads, tokens]`.
/// `queries` is `[query_heads, head_dim]` from `fold_query`; `bias` `[query_heads]` or null. A
/// decoded row serves all query heads of its KV head. Float32 sums; the error against exact
/// arithmetic on the decoded float32 keys is at most `(head_dim / 16 + 6) * 2^-24 * sum |q'_d
/// k^_d|` where no product underflows, plus one rounding of the score; the bias is added in
/// float64.
template <codec_type Codec, class Byte, packing Packing>
status gemv_qk(view<Codec, Byte, Packing> keys, token_range tokens, int query_heads,
               float const* queries, double const* bias, float* scores) noexcept {
  if (auto const s = detail::check_range(keys.map, keys.table, tokens); s != status::ok) return s;
  if (!detail::divides_heads(keys.map.heads, query_heads)) return status::bad_heads;
  int const shared = query_heads / keys.map.heads;
  int const head_dim = keys.map.head_dim;
  alignas(64) float row[max_head_dim];
  for (int head = 0; head < keys.map.heads; ++head) {
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
      decode_row(keys, head, t, row);
      for (int i = head * shared; i < (head + 1) * shared; ++i) {
        float const product = detail::dot(queries + std::int64_t{i} * head_dim, row, head_dim);
        scores[i * tokens.size() + (t - tokens.begin)] =
            bias == nullptr ? product : static_cast<float>(static_cast<double>(product) + bias[i]);
      }
    }
  }
  return status::ok;
}

/// Weighted sums of coded values, in coded space: `output[i]` = sum over t of p[i, t] v^[t], `p`
/// `[query_heads, tokens]`, `output` `[query_heads, head_dim]`, overwritten; `unrotate` it once per
/// query head. Float32 sums in blocks of 32 tokens; the error against exact arithmetic on the
/// decoded float32 values is at most `(tokens / 32 + 33) * 2^-24 * sum |p_t v^_td|`
/// where no product underflows.
template <codec_type Codec, class Byte, packing Packing>
status gemv_pv(view<Codec, Byte, Packing> values, token_range tokens, int query_heads,
               float const* p, float* output) noexcept {
  if (auto const s = detail::check_range(values.map, values.table, tokens); s != status::ok)
    return s;
  if (!detail::divides_heads(values.map.heads, query_heads)) return status::bad_heads;
  constexpr int block_tokens = 32;
  constexpr int block_heads = 8;  // query heads that share a decoded row; bounds the stack
  int const shared = query_heads / values.map.heads;
  int const head_dim = values.map.head_dim;
  alignas(64) float row[max_head_dim];
  alignas(64) float partial[block_heads][max_head_dim];
  std::fill(output, output + std::int64_t{query_heads} * head_dim, 0.0f);
  for (int first = 0; first < query_heads;) {
    int const head = first / shared;
    int const count = std::min(block_heads, (head + 1) * shared - first);
    for (std::int64_t begin = tokens.begin; begin < tokens.end; begin += block_tokens) {
      for (int i = 0; i < count; ++i) std::fill(partial[i], partial[i] + head_dim, 0.0f);
      std::int64_t const end = std::min(begin + block_tokens, tokens.end);
      for (std::int64_t t = begin; t < end; ++t) {
        decode_row(values, head, t, row);
        for (int i = 0; i < count; ++i) {
          float const weight = p[(first + i) * tokens.size() + (t - tokens.begin)];
          for (int d = 0; d < head_dim; ++d) partial[i][d] += weight * row[d];
        }
      }
      for (int i = 0; i < count; ++i) {
        float* const out = output + std::int64_t{first + i} * head_dim;
        for (int d = 0; d < head_dim; ++d) out[d] += partial[i][d];
      }
    }
    first += count;
  }
  return status::ok;
}

}  // namespace kvarts
