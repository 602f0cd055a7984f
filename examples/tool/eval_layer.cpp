// SPDX-License-Identifier: Apache-2.0
#include "eval_layer.hpp"

#include "eval_profile.hpp"

#include <kvarts/calibrate.hpp>

#include <algorithm>
#include <cmath>

namespace kvarts::tool {

namespace {

/// Queries that share a pass over keys and values: enough to make widening them cheap, few enough
/// for their weights to stay in cache.
constexpr std::size_t block_queries = 16;

template <class Integer>
constexpr std::size_t size(Integer n) noexcept {
  return static_cast<std::size_t>(n);
}

transform_view view_of(value_transform t) noexcept {
  return {nullptr, nullptr, 0, value_rotation(t)};
}

}  // namespace

block_errors& block_errors::operator+=(block_errors const& other) {
  for (std::size_t i = 0; i < readings.size(); ++i) readings[i] += other.readings[i];
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] += other.pairs[i];
  return *this;
}

layer_evaluation::layer_evaluation(dump const& of, dump_layer const& layer,
                                   transform const& calibrated, eval_plan const& plan)
    : of_(of),
      layer_(layer),
      calibrated_(calibrated),
      plan_(plan),
      innerq_(innerq_norm(layer.k, of.prefill())),
      q_(*layer.q),
      k_(layer.k),
      v_(*layer.v),
      coded_k_(plan.keys.size()),
      coded_v_(plan.values.size()),
      blocks_(size(of.q_heads) * blocks_of_head()) {}

void layer_evaluation::code(std::size_t i) {
  if (i < coded_k_.size()) {
    key_coding const& c = plan_.keys[i];
    coded_k_[i] = {recode(*c.codec, c.group, layer_.k, view_of(c.transform)), of_.kv_heads};
  } else {
    i -= coded_k_.size();
    value_coding const& c = plan_.values[i];
    coded_v_[i] = {recode(*c.codec, c.group, *layer_.v, tool::view_of(c.transform)), of_.kv_heads};
  }
}

void layer_evaluation::attend(std::size_t i) {
  std::size_t const head = i / blocks_of_head();
  std::size_t const kv_head = head / size(of_.q_heads / of_.kv_heads);
  std::size_t const first = i % blocks_of_head() * block_queries;
  std::size_t const count = std::min(block_queries, size(of_.queries) - first);
  std::size_t const head_dim = size(of_.head_dim);
  attention_block block({q_.head(head).subspan(first * head_dim, count * head_dim),
                         of_.prefill() + static_cast<std::int64_t>(first), of_.head_dim},
                        k_.head(kv_head), v_.head(kv_head));
  block_errors& errors = blocks_[i];
  errors.readings.resize(plan_.readings.size());
  errors.pairs.resize(plan_.pairs.size());
  for (std::size_t r = 0; r < plan_.readings.size(); ++r) {
    auto const [keys, window] = plan_.readings[r];
    coded_region const key_region{window.sink, window.recent, plan_.keys[keys].step()};
    errors.readings[r] = block.code_keys(coded_k_[keys].head(kv_head), key_region);
    for (std::size_t p = 0; p < plan_.pairs.size(); ++p) {
      auto const [reading, values] = plan_.pairs[p];
      if (reading != r) continue;
      coded_region const value_region{window.sink, window.recent, plan_.values[values].step()};
      errors.pairs[p] = block.code_values(coded_v_[values].head(kv_head), value_region);
    }
  }
}

void layer_evaluation::report(eval_result& result) const {
  std::vector<block_errors> const heads = errors_of_heads();
  for (std::size_t i = 0; i < plan_.presets.size(); ++i) {
    std::size_t const pair = plan_.presets[i].pair;
    result.presets[i].layers.push_back(
        {layer_.layer, measure(pair, heads), kl_of_heads(pair, heads)});
  }
  float_rows const coded_keys(coded_space(layer_.k, calibrated_.view()), of_.kv_heads);
  std::size_t const head_dim = size(of_.head_dim);
  for (int h = 0; h < of_.kv_heads; ++h) {
    auto const keys = k_.head(size(h));
    result.channels.push_back(
        profile_channels(layer_.layer, h, keys, coded_keys.head(size(h)), head_dim));
    result.values.push_back(norms_of_values(layer_.layer, h, v_.head(size(h)), head_dim));
  }
}

std::size_t layer_evaluation::blocks_of_head() const noexcept {
  return (size(of_.queries) + block_queries - 1) / block_queries;
}

transform_view layer_evaluation::view_of(key_transform t) const {
  transform_view view;
  if (t == key_transform::innerq) view = innerq_.view();
  if (needs_calibration(t)) view = calibrated_.view();
  // A transform file may have a rotation of its own, for the preset that it was made for.
  if (t != key_transform::calibrated) view.rotate = key_rotation(t);
  return view;
}

/// Sums over the blocks of each query head, in order, so that threads do not change the result.
std::vector<block_errors> layer_evaluation::errors_of_heads() const {
  std::vector<block_errors> heads;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (i % blocks_of_head() == 0) {
      heads.push_back(blocks_[i]);
    } else {
      heads.back() += blocks_[i];
    }
  }
  return heads;
}

measures layer_evaluation::measure(std::size_t pair, std::vector<block_errors> const& heads) const {
  auto const [reading, values] = plan_.pairs[pair];
  score_errors scores;
  double output = 0;
  for (block_errors const& head : heads) {
    scores += head.readings[reading];
    output += head.pairs[pair].relative();
  }
  auto const count = static_cast<double>(heads.size());
  measures m;
  m.k_rel_sq_err = relative_error(coded_k_[plan_.readings[reading].keys], k_);
  m.v_rel_sq_err = relative_error(coded_v_[values], v_);
  if (scores.pairs > 0) {  // short texts may not leave the windows, or not fill a group
    m.logit_rms_err = std::sqrt(scores.squares / static_cast<double>(scores.pairs));
  }
  m.attention_kl = scores.kl / (count * static_cast<double>(of_.queries));
  m.output_rel_err = std::sqrt(output / count);
  return m;
}

/// Mean over the queries of the query heads of each KV head.
std::vector<double> layer_evaluation::kl_of_heads(std::size_t pair,
                                                  std::vector<block_errors> const& heads) const {
  std::size_t const shared = size(of_.q_heads / of_.kv_heads);
  std::vector<double> kl(size(of_.kv_heads));
  for (std::size_t i = 0; i < heads.size(); ++i) {
    kl[i / shared] += heads[i].readings[plan_.pairs[pair].reading].kl;
  }
  for (double& k : kl) k /= static_cast<double>(shared) * static_cast<double>(of_.queries);
  return kl;
}

/// Mean over KV heads.
double layer_evaluation::relative_error(float_rows const& coded, float_rows const& exact) const {
  double sum = 0;
  for (std::size_t h = 0; h < size(of_.kv_heads); ++h) {
    sum += compare(coded.head(h), exact.head(h)).relative();
  }
  return sum / of_.kv_heads;
}

}  // namespace kvarts::tool
