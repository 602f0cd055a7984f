// SPDX-License-Identifier: Apache-2.0
#include "eval_attention.hpp"

#include <algorithm>
#include <cmath>

namespace kvarts::tool {

namespace {

/// Tokens whose rows are widened to float64 at a time; those of 64 channels fill a first-level
/// cache.
constexpr std::int64_t token_block = 64;

std::vector<double> zeros(std::int64_t count) {
  return std::vector<double>(static_cast<std::size_t>(count));
}

/// `sums[j] += sum over i of weights[i] * rows[i * stride + j]`, j < width. Both products of
/// attention are this: a query times transposed keys, and weights times values.
void add_weighted_rows(double const* weights, double const* __restrict rows, std::int64_t count,
                       std::int64_t stride, std::int64_t width, double* __restrict sums) noexcept {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {  // eight at a time touch the sums less often
    double const* const w = weights + i;
    double const* const r = rows + i * stride;
    for (std::int64_t j = 0; j < width; ++j) {
      sums[j] += ((w[0] * r[j] + w[1] * r[j + stride]) +
                  (w[2] * r[j + 2 * stride] + w[3] * r[j + 3 * stride])) +
                 ((w[4] * r[j + 4 * stride] + w[5] * r[j + 5 * stride]) +
                  (w[6] * r[j + 6 * stride] + w[7] * r[j + 7 * stride]));
    }
  }
  for (; i < count; ++i) {
    for (std::int64_t j = 0; j < width; ++j) sums[j] += weights[i] * rows[i * stride + j];
  }
}

/// log(1e-300): a weight that float64 can hardly hold counts as this, so that one token whose coded
/// score is thousands off does not outweigh all others.
constexpr double least_log_weight = -690.7755278982137;

/// Weights of `count` tokens; returns the log of the sum of exp(score).
double softmax(double const* scores, std::int64_t count, double* weights) {
  double const largest = *std::max_element(scores, scores + count);
  double sum = 0;
  for (std::int64_t t = 0; t < count; ++t) sum += weights[t] = std::exp(scores[t] - largest);
  double const factor = 1.0 / sum;
  for (std::int64_t t = 0; t < count; ++t) weights[t] *= factor;
  return largest + std::log(sum);
}

template <class Numbers>
squared_error compare_numbers(Numbers const& coded, Numbers const& exact) noexcept {
  squared_error result;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    double const x = exact[i];
    double const d = coded[i] - x;
    result.error += d * d;
    result.exact += x * x;
  }
  return result;
}

}  // namespace

token_range coded_region::of(std::int64_t tokens) const noexcept {
  std::int64_t const begin = std::min(sink, tokens);
  std::int64_t const left = std::max<std::int64_t>(0, tokens - sink - recent);
  return {begin, begin + left / step * step};
}

score_errors& score_errors::operator+=(score_errors const& other) noexcept {
  kl += other.kl;
  squares += other.squares;
  pairs += other.pairs;
  return *this;
}

squared_error& squared_error::operator+=(squared_error const& other) noexcept {
  error += other.error;
  exact += other.exact;
  return *this;
}

squared_error compare(std::span<float const> coded, std::span<float const> exact) noexcept {
  return compare_numbers(coded, exact);
}

attention_block::attention_block(query_block const& queries, std::span<float const> keys,
                                 std::span<float const> values)
    : head_dim_(queries.head_dim),
      queries_(static_cast<std::int64_t>(queries.rows.size()) / head_dim_),
      position_(queries.position),
      tokens_(position_ + queries_),
      values_(values),
      scaled_queries_(queries.rows.begin(), queries.rows.end()),
      weights_(zeros(queries_ * tokens_)),
      coded_weights_(zeros(queries_ * tokens_)),
      outputs_(zeros(queries_ * head_dim_)) {
  double const scale = 1.0 / std::sqrt(static_cast<double>(head_dim_));
  for (double& x : scaled_queries_) x *= scale;
  scores_ = scores_of(keys);
  for (std::int64_t i = 0; i < queries_; ++i) {
    log_sums_.push_back(
        softmax(scores_.data() + i * tokens_, reads(i), weights_.data() + i * tokens_));
  }
  add_outputs(
      weights_, values,
      [](std::int64_t n) {
        return token_range{0, n};
      },
      outputs_);
}

score_errors attention_block::code_keys(std::span<float const> keys, coded_region const& region) {
  std::vector<double> scores = scores_of(keys);
  score_errors result;
  for (std::int64_t i = 0; i < queries_; ++i) {
    double const* const exact = scores_.data() + i * tokens_;
    double const* const weights = weights_.data() + i * tokens_;
    double* const coded = scores.data() + i * tokens_;
    token_range const codes = region.of(reads(i));
    std::copy(exact, exact + codes.begin, coded);
    std::copy(exact + codes.end, exact + reads(i), coded + codes.end);
    double const log_sum = softmax(coded, reads(i), coded_weights_.data() + i * tokens_);
    double kl = log_sum - log_sums_[static_cast<std::size_t>(i)];
    for (std::int64_t t = codes.begin; t < codes.end; ++t) {
      double const error = coded[t] - exact[t];
      kl -= weights[t] * error;
      result.squares += error * error;
    }
    for (std::int64_t t = 0; t < reads(i); ++t) {
      double const log_weight = coded[t] - log_sum;
      if (log_weight < least_log_weight) kl -= weights[t] * (least_log_weight - log_weight);
    }
    result.kl += std::max(kl, 0.0);  // rounding alone makes it negative
    result.pairs += codes.size();
  }
  return result;
}

squared_error attention_block::code_values(std::span<float const> values,
                                           coded_region const& region) const {
  std::vector<double> outputs = zeros(queries_ * head_dim_);
  auto const sinks = [&](std::int64_t n) { return token_range{0, region.of(n).begin}; };
  auto const codes = [&](std::int64_t n) { return region.of(n); };
  auto const recent = [&](std::int64_t n) { return token_range{region.of(n).end, n}; };
  add_outputs(coded_weights_, values_, sinks, outputs);
  add_outputs(coded_weights_, values, codes, outputs);
  add_outputs(coded_weights_, values_, recent, outputs);
  return compare_numbers(outputs, outputs_);
}

/// All products of queries and keys, those that are not causal included.
std::vector<double> attention_block::scores_of(std::span<float const> keys) const {
  std::vector<double> scores = zeros(queries_ * tokens_);
  std::vector<double> transposed = zeros(head_dim_ * token_block);
  for (std::int64_t begin = 0; begin < tokens_; begin += token_block) {
    std::int64_t const count = std::min(token_block, tokens_ - begin);
    float const* row = keys.data() + begin * head_dim_;
    for (std::int64_t t = 0; t < count; ++t, row += head_dim_) {
      for (std::int64_t d = 0; d < head_dim_; ++d) transposed.data()[d * token_block + t] = row[d];
    }
    for (std::int64_t i = 0; i < queries_; ++i) {
      add_weighted_rows(scaled_queries_.data() + i * head_dim_, transposed.data(), head_dim_,
                        token_block, count, scores.data() + i * tokens_ + begin);
    }
  }
  return scores;
}

/// Adds weights times values over the tokens `range(n)` of each query, which reads n tokens. Ranges
/// never move back from one query to the next.
template <class Range>
void attention_block::add_outputs(std::vector<double> const& weights, std::span<float const> values,
                                  Range range, std::vector<double>& outputs) const {
  std::vector<double> wide = zeros(token_block * head_dim_);
  std::int64_t const last = range(reads(queries_ - 1)).end;
  for (std::int64_t begin = range(reads(0)).begin; begin < last; begin += token_block) {
    std::int64_t const end = std::min(begin + token_block, last);
    std::copy(values.data() + begin * head_dim_, values.data() + end * head_dim_, wide.data());
    for (std::int64_t i = 0; i < queries_; ++i) {
      token_range const of_query = range(reads(i));
      std::int64_t const from = std::max(of_query.begin, begin);
      std::int64_t const to = std::min(of_query.end, end);
      add_weighted_rows(weights.data() + i * tokens_ + from,
                        wide.data() + (from - begin) * head_dim_, to - from, head_dim_, head_dim_,
                        outputs.data() + i * head_dim_);
    }
  }
}

}  // namespace kvarts::tool
