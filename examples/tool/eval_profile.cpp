// SPDX-License-Identifier: Apache-2.0
#include "eval_profile.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

namespace kvarts::tool {

namespace {

/// Means of the channels of rows `[tokens, channels]`.
std::vector<double> means(std::span<float const> rows, std::size_t channels) {
  std::vector<double> sums(channels);
  for (std::size_t i = 0; i < rows.size(); ++i) sums[i % channels] += rows[i];
  for (double& s : sums) s /= static_cast<double>(rows.size() / channels);
  return sums;
}

/// Root mean squares of the channels of rows `[tokens, center.size()]` about a center.
std::vector<double> deviations(std::span<float const> rows, std::vector<double> const& center) {
  std::size_t const channels = center.size();
  std::vector<double> sums(channels);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double const d = rows[i] - center[i % channels];
    sums[i % channels] += d * d;
  }
  for (double& s : sums) s = std::sqrt(s / static_cast<double>(rows.size() / channels));
  return sums;
}

}  // namespace

channel_profile profile_channels(int layer, int kv_head, std::span<float const> keys,
                                 std::span<float const> coded_keys, std::size_t head_dim) {
  std::vector<double> const zero(head_dim);
  std::vector<double> const mean = means(keys, head_dim);
  return {layer, kv_head, mean, deviations(keys, mean), deviations(coded_keys, zero)};
}

value_norms norms_of_values(int layer, int kv_head, std::span<float const> values,
                            std::size_t head_dim) {
  value_norms result{layer, kv_head, {}};
  for (std::size_t i = 0; i < values.size(); i += head_dim) {
    double square = 0;
    for (float const x : values.subspan(i, head_dim)) square += double{x} * x;
    result.norms.push_back(std::sqrt(square));
  }
  return result;
}

}  // namespace kvarts::tool
