// SPDX-License-Identifier: Apache-2.0
/// @file
/// What `kvarts eval` measures, as plain data: `eval` fills it, the table, JSON and HTML print it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kvarts::tool {

/// Whether presets are measured with their windows of exact tokens, without, or both.
enum class windows_choice { off, on, both };

/// The five error measures of one preset, of one layer or averaged over layers.
struct measures {
  double k_rel_sq_err = 0;    ///< sum |k^ - k|^2 / sum |k|^2, mean over KV heads
  double v_rel_sq_err = 0;    ///< the same of the values
  double logit_rms_err = 0;   ///< root mean square error of q.k / sqrt(head_dim)
  double attention_kl = 0;    ///< KL(exact || coded) of the attention weights, nats
  double output_rel_err = 0;  ///< |o^ - o| / |o| of the attention output
};

/// Stored bits a value, parameters included: keys, values and their mean.
struct effective_bits {
  double k = 0;
  double v = 0;
  double mean = 0;
};

/// The measures of one layer.
struct layer_result {
  int layer = 0;
  measures values;
  std::vector<double> kl_of_heads{};  ///< `attention_kl` of the query heads of each KV head
};

/// One preset: its cost, its error in every layer and the mean over layers.
struct preset_result {
  std::string preset;
  std::string windows;  ///< "off" or "on"
  effective_bits bits;
  std::vector<layer_result> layers;
  measures mean;
  bool bears_offsets = false;  ///< constant key channels do no harm: centered, or scaled by channel
};

/// What a preset may cost at most.
struct budget {
  std::optional<double> max_bits;  ///< mean bits a value
  std::optional<double> max_kl;    ///< mean over layers, nats
};

/// Statistics of every key channel of one KV head, each `[head_dim]`.
struct channel_profile {
  int layer = 0;
  int kv_head = 0;
  std::vector<double> mean_before;  ///< mean over tokens
  std::vector<double> rms_before;   ///< root mean square deviation from that mean
  std::vector<double> rms_after;  ///< root mean square in coded space: after center, norm, rotation
};

/// The norm |v| of every token of one KV head, `[tokens]` in token order.
struct value_norms {
  int layer = 0;
  int kv_head = 0;
  std::vector<double> norms;
};

/// Everything one run of `kvarts eval` found.
struct eval_result {
  std::string dump;   ///< file that was read
  std::string model;  ///< the dump's own metadata
  std::string text;
  int tokens = 0;
  int queries = 0;
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  std::string calibration;  ///< file of the key transforms; empty: estimated from the dump itself
  std::vector<preset_result> presets;
  std::vector<channel_profile> channels;
  std::vector<value_norms> values;
  std::vector<std::string> warnings;
  budget limits{};
};

}  // namespace kvarts::tool
