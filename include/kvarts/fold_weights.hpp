// SPDX-License-Identifier: Apache-2.0
/// @file
/// Folds key norms into a model's projections, so that an engine's keys come out normalized and no
/// query needs folding.
#pragma once

#include <kvarts/status.hpp>
#include <kvarts/transform.hpp>

#include <cstdint>

namespace kvarts {

/// Which channels a rotary embedding turns together.
enum class rope_pairs : std::uint8_t {
  interleaved,  ///< (2i, 2i + 1)
  half_split,   ///< (i, i + head_dim / 2)
};

/// The other channel of a pair.
constexpr int rope_partner(rope_pairs pairs, int channel, int head_dim) noexcept {
  if (pairs == rope_pairs::interleaved) return channel ^ 1;
  return channel < head_dim / 2 ? channel + head_dim / 2 : channel - head_dim / 2;
}

/// Gives both channels of every RoPE pair the larger of their norms, without which folding into
/// weights before RoPE would not be exact. `head_dim` must be even.
inline void equalize_pairs(transform& t, rope_pairs pairs) noexcept {
  for (int h = 0; h < t.heads; ++h) {
    float* const norm = t.norm.data() + std::ptrdiff_t{h} * t.head_dim;
    for (int d = 0; d < t.head_dim; ++d) {
      int const other = rope_partner(pairs, d, t.head_dim);
      if (norm[other] > norm[d]) norm[d] = norm[other];
    }
  }
}

/// Divides the rows of W_K `[kv_heads * head_dim, inputs]` by the norms of `t` and multiplies the
/// rows of W_Q `[query_heads * head_dim, inputs]` by them, in place; norms are made equal within
/// RoPE pairs first (and so they are in `t` afterwards). Scores do not change; keys come out
/// divided by the norm. Biases are weights with one input: call it again on them with inputs = 1.
/// `bad_transform` when there is a center or a rotation (neither commutes with RoPE) or no norm;
/// `bad_heads` when KV heads do not divide query heads; `bad_head_dim` when head_dim is odd.
/// Nothing is changed unless `ok`.
inline status fold_weights(transform& t, rope_pairs pairs, int query_heads, std::int64_t inputs,
                           float* w_q, float* w_k) noexcept {
  if (t.norm.empty() || !t.center.empty() || t.rotate.rounds != 0) return status::bad_transform;
  if (auto const p = check(t, t.heads, t.head_dim)) return p.code;
  if (t.heads < 1 || query_heads < 1 || query_heads % t.heads != 0) return status::bad_heads;
  if (t.head_dim % 2 != 0) return status::bad_head_dim;
  equalize_pairs(t, pairs);
  int const shared = query_heads / t.heads;
  for (int i = 0; i < query_heads * t.head_dim; ++i) {
    int const kv_head = i / t.head_dim / shared;
    float const norm = t.norm[static_cast<std::size_t>(kv_head * t.head_dim + i % t.head_dim)];
    for (std::int64_t j = 0; j < inputs; ++j) w_q[i * inputs + j] *= norm;
  }
  for (int i = 0; i < t.heads * t.head_dim; ++i) {
    float const norm = t.norm[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < inputs; ++j) w_k[i * inputs + j] /= norm;
  }
  return status::ok;
}

}  // namespace kvarts
