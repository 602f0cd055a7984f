// SPDX-License-Identifier: Apache-2.0
/// @file
/// The host reference of decode attention over codes and 16-bit windows.
///
/// Scores of coded keys are `q'.y + q.center` with the folded query, scores of window keys plain
/// `q.k`. Coded values sum up in rotated space and are rotated back once per query, before window
/// values, which sum up apart, are added.
#pragma once

#include <kvarts/cache_view.hpp>
#include <kvarts/gemv.hpp>
#include <kvarts/rows.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kvarts {

/// How scores become weights.
struct attention_options {
  float scale = 0.0f;               ///< factor of q.k; 0 means 1 / sqrt(head_dim of K)
  float soft_cap = 0.0f;            ///< cap * tanh(score / cap); 0 means none
  std::int64_t sliding_window = 0;  ///< a query sees this many positions up to its own; 0 means all
  /// Positions that count at all; parts of a sequence are computed apart and merged.
  token_range positions{0, std::numeric_limits<std::int64_t>::max()};
};

/// Merges a partial result into another, both `output[n]` with the natural log-sum-exp of their
/// scores: an empty part (output 0, lse -inf) changes nothing.
inline void merge_partials(float* output, float& lse, float const* other, float other_lse,
                           int n) noexcept {
  if (other_lse == -std::numeric_limits<float>::infinity()) return;
  float const highest = std::max(lse, other_lse);
  float const mine = std::exp(lse - highest);
  float const theirs = std::exp(other_lse - highest);
  float const total = mine + theirs;
  for (int d = 0; d < n; ++d) output[d] = (mine * output[d] + theirs * other[d]) / total;
  lse = highest + std::log(total);
}

namespace detail {

/// One query head at one position, plain and folded, and what it has gathered: weights exp(score -
/// maximum), their sum, and the weighted sums of coded values (rotated) and of window values.
struct query_state {
  alignas(64) float plain[max_head_dim];
  alignas(64) float folded[max_head_dim];
  alignas(64) double coded[max_head_dim];
  alignas(64) double window[max_head_dim];
  double bias;
  double maximum;
  double sum;

  void begin(float const* query, int kv_head, int key_dim, int value_dim,
             prepared_transform const& fold) noexcept {
    std::copy_n(query, key_dim, plain);
    std::copy_n(query, key_dim, folded);
    std::fill_n(coded, value_dim, 0.0);
    std::fill_n(window, value_dim, 0.0);
    bias = fold.fold_query(kv_head, folded);
    maximum = -std::numeric_limits<double>::infinity();
    sum = 0.0;
  }

  /// q.k. Plain keys may lie far from zero, with products that nearly cancel; coded ones do not.
  double score(float const* key, int key_dim, bool is_coded) const noexcept {
    if (!is_coded) return dot<double>(plain, key, key_dim);
    return static_cast<double>(dot(folded, key, key_dim)) + bias;
  }

  /// Makes room for scores up to `highest`.
  void raise(double highest, int value_dim) noexcept {
    if (!(highest > maximum)) return;
    double const factor = std::exp(maximum - highest);
    maximum = highest;
    sum *= factor;
    for (int d = 0; d < value_dim; ++d) coded[d] *= factor;
    for (int d = 0; d < value_dim; ++d) window[d] *= factor;
  }

  void add(double score_of_value, float const* value, int value_dim, bool is_coded) noexcept {
    double const weight = std::exp(score_of_value - maximum);
    double* const to = is_coded ? coded : window;
    sum += weight;
    for (int d = 0; d < value_dim; ++d) to[d] += weight * static_cast<double>(value[d]);
  }

  /// Rotates the coded part back, adds the window's, and returns the log-sum-exp.
  float finish(float* output, int value_dim, prepared_rotation<float> const& unrotation) noexcept {
    double const divisor = sum > 0.0 ? sum : 1.0;
    for (int d = 0; d < value_dim; ++d) output[d] = static_cast<float>(coded[d] / divisor);
    unrotation.inverse(output);
    for (int d = 0; d < value_dim; ++d) output[d] += static_cast<float>(window[d] / divisor);
    return static_cast<float>(maximum + std::log(sum));
  }
};

/// Query heads of one KV head that share decoded rows; bounds the stack (about 200 KB).
inline constexpr int attention_block = 8;

/// Positions whose scores are computed before their values are read.
inline constexpr int attention_tokens = 32;

/// One row of keys or values; true when it is in coded space.
template <class CodedView>
bool load_position(CodedView const& codes, window_view<std::byte const> const& window,
                   partition const& parts, int head, std::int64_t position, float* row) noexcept {
  if (position >= parts.sinks && position < parts.coded_end) {
    decode_row(codes, head, position, row);
    return true;
  }
  load_finite(window.recents.type, window.row(head, position), window.recents.map.head_dim, row);
  return false;
}

inline double shape_score(double product, attention_options const& o) noexcept {
  double const score = product * static_cast<double>(o.scale);
  double const cap = o.soft_cap;
  return cap > 0.0 ? cap * std::tanh(score / cap) : score;
}

/// What a query at a position sees.
constexpr token_range visible_positions(std::int64_t position,
                                        attention_options const& o) noexcept {
  std::int64_t const first = o.sliding_window > 0 ? position + 1 - o.sliding_window : 0;
  return {std::max({first, o.positions.begin, std::int64_t{0}}),
          std::min(position + 1, o.positions.end)};
}

/// Adds positions begin..end-1 (at most `attention_tokens`) of one KV head to `count` queries.
template <class Sequence>
void attend_block(Sequence const& s, int head, std::int64_t begin, std::int64_t end,
                  query_state* queries, int count, attention_options const& o) noexcept {
  alignas(64) float row[max_head_dim];
  double scores[attention_block][attention_tokens];
  int const key_dim = s.keys.map.head_dim;
  int const value_dim = s.values.map.head_dim;
  for (std::int64_t t = begin; t < end; ++t) {
    bool const coded = load_position(s.keys, s.key_window, s.key_parts, head, t, row);
    for (int i = 0; i < count; ++i) {
      scores[i][t - begin] = shape_score(queries[i].score(row, key_dim, coded), o);
    }
  }
  for (int i = 0; i < count; ++i) {
    queries[i].raise(*std::max_element(scores[i], scores[i] + (end - begin)), value_dim);
  }
  for (std::int64_t t = begin; t < end; ++t) {
    bool const coded = load_position(s.values, s.value_window, s.value_parts, head, t, row);
    for (int i = 0; i < count; ++i) queries[i].add(scores[i][t - begin], row, value_dim, coded);
  }
}

/// What `attention` refuses.
template <class Sequence>
status check_attention(Sequence const& s, int query_tokens, int query_heads) noexcept {
  if (!divides_heads(s.keys.map.heads, query_heads)) return status::bad_heads;
  if (s.values.map.heads != s.keys.map.heads) return status::bad_heads;
  if (query_tokens < 0) return status::bad_tokens;
  token_range const keys{s.key_parts.sinks, s.key_parts.coded_end};
  token_range const values{s.value_parts.sinks, s.value_parts.coded_end};
  auto const code = check_range(s.keys.map, s.keys.table, keys);
  return code != status::ok ? code : check_range(s.values.map, s.values.table, values);
}

}  // namespace detail

/// Attention of the last `query_tokens` tokens of a sequence, causal: query j is at position
/// `tokens - query_tokens + j` and sees positions up to its own. `queries` is float32
/// `[query_tokens, query_heads, head_dim of K]`, in model space; `output` `[query_tokens,
/// query_heads, head_dim of V]` and `lse` (natural log-sum-exp, may be null) `[query_tokens,
/// query_heads]` are overwritten. Query head i reads KV head i / (query_heads / heads). A query
/// that sees nothing gives output 0 and lse -inf, so does one before the first token. Results of
/// disjoint parts of a sequence merge with `merge_partials`. Float32 products of rows, softmax and
/// sums over tokens in float64. Never allocates. `bad_heads` when KV heads do not divide query
/// heads, `bad_page` or `bad_tokens` when the block table lacks coded positions; then nothing is
/// written.
template <codec_type KeyCodec, codec_type ValueCodec, packing KeyPacking, packing ValuePacking>
status attention(sequence_view<KeyCodec, ValueCodec, KeyPacking, ValuePacking> const& s, int query_tokens, int query_heads,
                 float const* queries, float* output, float* lse,
                 attention_options options = {}) noexcept {
  auto const code = detail::check_attention(s, query_tokens, query_heads);
  if (code != status::ok) return code;
  int const shared = query_heads / s.keys.map.heads;
  int const key_dim = s.keys.map.head_dim;
  int const value_dim = s.values.map.head_dim;
  if (options.scale == 0.0f) options.scale = 1.0f / std::sqrt(static_cast<float>(key_dim));
  detail::prepared_transform const fold(s.key_transform, key_dim);
  detail::prepared_rotation<float> const unrotation(s.value_rotation, value_dim);
  detail::query_state block[detail::attention_block];

  for (int token = 0; token < query_tokens; ++token) {
    token_range const visible =
        detail::visible_positions(s.tokens() - query_tokens + token, options);
    for (int begin = 0, count = 0; begin < query_heads; begin += count) {
      int const head = begin / shared;
      count = std::min(detail::attention_block, (head + 1) * shared - begin);
      std::int64_t const at = std::int64_t{token} * query_heads + begin;
      for (int i = 0; i < count; ++i) {
        block[i].begin(queries + (at + i) * key_dim, head, key_dim, value_dim, fold);
      }
      for (std::int64_t t = visible.begin; t < visible.end; t += detail::attention_tokens) {
        std::int64_t const end = std::min(t + detail::attention_tokens, visible.end);
        detail::attend_block(s, head, t, end, block, count, options);
      }
      for (int i = 0; i < count; ++i) {
        float const total = block[i].finish(output + (at + i) * value_dim, value_dim, unrotation);
        if (lse != nullptr) lse[at + i] = total;
      }
    }
  }
  return status::ok;
}

/// `attention` of every slot of a cache, of any lengths: `queries`, `output` and `lse` have a
/// leading dimension `[sequences]`. Slots without tokens give output 0 and lse -inf. Stops at the
/// first fault.
template <codec_type KeyCodec, codec_type ValueCodec, packing KeyPacking, packing ValuePacking>
status attention(cache_view<KeyCodec, ValueCodec, KeyPacking, ValuePacking> const& c, int query_tokens, int query_heads,
                 float const* queries, float* output, float* lse,
                 attention_options const& options = {}) noexcept {
  std::int64_t const rows = std::int64_t{query_tokens} * query_heads;
  for (int i = 0; i < c.sequences; ++i) {
    auto const code = attention(c.sequence(i), query_tokens, query_heads,
                                queries + i * rows * c.keys.map.head_dim,
                                output + i * rows * c.values.map.head_dim,
                                lse == nullptr ? nullptr : lse + i * rows, options);
    if (code != status::ok) return code;
  }
  return status::ok;
}

}  // namespace kvarts
