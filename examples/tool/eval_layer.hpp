// SPDX-License-Identifier: Apache-2.0
/// @file
/// One layer of a dump under every preset of a plan.
#pragma once

#include "dump.hpp"
#include "eval_attention.hpp"
#include "eval_coding.hpp"
#include "eval_result.hpp"
#include "float_rows.hpp"

#include <kvarts/transform.hpp>

#include <cstddef>
#include <vector>

namespace kvarts::tool {

/// What one block of queries of one head adds to the measures.
struct block_errors {
  std::vector<score_errors> readings;  ///< of each reading of keys
  std::vector<squared_error> pairs;    ///< of each pair

  block_errors& operator+=(block_errors const& other);
};

/// One layer: its rows, exact and in every coding of a plan, and what attention makes of them.
/// Codings are independent of one another, and so are blocks of queries once all codings are there.
class layer_evaluation {
 public:
  /// Refers to all its arguments.
  layer_evaluation(dump const& of, dump_layer const& layer, transform const& calibrated,
                   eval_plan const& plan);

  std::size_t codings() const noexcept { return coded_k_.size() + coded_v_.size(); }
  std::size_t blocks() const noexcept { return blocks_.size(); }

  /// Codes the keys, or the values, in one way; i < codings().
  void code(std::size_t i);

  /// Compares the attention of one block of queries; i < blocks().
  void attend(std::size_t i);

  /// Adds this layer to the result, whose presets are those of the plan.
  void report(eval_result& result) const;

 private:
  std::size_t blocks_of_head() const noexcept;
  transform_view view_of(key_transform t) const;
  std::vector<block_errors> errors_of_heads() const;
  measures measure(std::size_t pair, std::vector<block_errors> const& heads) const;
  std::vector<double> kl_of_heads(std::size_t pair, std::vector<block_errors> const& heads) const;
  double relative_error(float_rows const& coded, float_rows const& exact) const;

  dump const& of_;
  dump_layer const& layer_;
  transform const& calibrated_;
  eval_plan const& plan_;
  transform innerq_;
  float_rows q_;
  float_rows k_;
  float_rows v_;
  std::vector<float_rows> coded_k_;   ///< of each key coding
  std::vector<float_rows> coded_v_;   ///< of each value coding
  std::vector<block_errors> blocks_;  ///< [q_heads, blocks of a head]
};

}  // namespace kvarts::tool
