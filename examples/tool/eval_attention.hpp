// SPDX-License-Identifier: Apache-2.0
/// @file
/// Causal attention in float64 on float32 rows, exact and coded side by side: what `kvarts eval`
/// compares presets with. Written for many pairs of codings, not for decoding.
#pragma once

#include <kvarts/view.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace kvarts::tool {

/// Consecutive queries of one query head.
struct query_block {
  std::span<float const> rows;  ///< [queries, head_dim]
  std::int64_t position = 0;    ///< of the first: query i reads tokens 0 .. position + i
  int head_dim = 0;
};

/// Which tokens a query reads from codes when it reads the first `tokens`: whole steps after the
/// sinks, as far as the recent window lets them. All others are exact. Codecs grouped along tokens
/// have their group as the step, since a group is not coded before it is full.
struct coded_region {
  std::int64_t sink = 0;
  std::int64_t recent = 0;
  std::int64_t step = 1;

  token_range of(std::int64_t tokens) const noexcept;
};

/// Sums over the queries of a block; squares are over coded (query, token) pairs.
struct score_errors {
  double kl = 0;       ///< KL(exact || coded) of the weights, at least 1e-300 each; nats
  double squares = 0;  ///< squared errors of q.k / sqrt(head_dim)
  std::int64_t pairs = 0;

  score_errors& operator+=(score_errors const& other) noexcept;
};

/// Sums over rows: squared errors, and squares of the exact numbers.
struct squared_error {
  double error = 0;
  double exact = 0;

  squared_error& operator+=(squared_error const& other) noexcept;
  /// error / exact; 0 where nothing differs.
  double relative() const noexcept { return error == 0 ? 0 : error / exact; }
};

/// The difference of two arrays of one length.
squared_error compare(std::span<float const> coded, std::span<float const> exact) noexcept;

/// Attention of a block of queries over one KV head: exact once, then with as many codings as
/// wanted. Keys and values are `[tokens, head_dim]`, in model space; they hold at least the tokens
/// that the last query reads and outlive the block.
class attention_block {
 public:
  attention_block(query_block const& queries, std::span<float const> keys,
                  std::span<float const> values);

  /// Weights from coded keys; later calls of `code_values` use them.
  score_errors code_keys(std::span<float const> keys, coded_region const& region);

  /// Output from the coded weights and coded values.
  squared_error code_values(std::span<float const> values, coded_region const& region) const;

 private:
  /// Tokens that a query reads.
  std::int64_t reads(std::int64_t query) const noexcept { return position_ + 1 + query; }
  std::vector<double> scores_of(std::span<float const> keys) const;
  template <class Range>
  void add_outputs(std::vector<double> const& weights, std::span<float const> values, Range range,
                   std::vector<double>& outputs) const;

  std::int64_t head_dim_;
  std::int64_t queries_;
  std::int64_t position_;
  std::int64_t tokens_;  ///< tokens that the last query reads
  std::span<float const> values_;
  std::vector<double> scaled_queries_;  ///< [queries, head_dim], over sqrt(head_dim)
  std::vector<double> scores_;          ///< [queries, tokens], as weights are
  std::vector<double> weights_;
  std::vector<double> coded_weights_;
  std::vector<double> log_sums_;  ///< of exp(score), a query each
  std::vector<double> outputs_;   ///< [queries, head_dim]
};

}  // namespace kvarts::tool
