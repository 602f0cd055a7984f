// SPDX-License-Identifier: Apache-2.0
/// @file
/// The published experiments of a quantized host tier, simulated, and what they cannot tell: more
/// groups, other budgets, requests of the user's own.
#pragma once

#include "tier/plan.hpp"
#include "tier/simulation.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// A tier that takes part: codecs, and the form in which they are stored.
struct contender {
  std::string name;
  codec_pair codecs;
  tier_form form;
};

/// The tiers that tables and charts compare, most bytes first.
std::vector<contender> const& contenders();

/// A contender with the sizes that a model gives it.
struct tier_sizes {
  std::string name;
  std::string codec;
  tier_form form;
  std::int64_t record_bytes = 0;  ///< K of one layer
  std::int64_t bytes_per_token = 0;
};

/// A tier in one experiment.
struct tier_run {
  tier_sizes tier;
  std::int64_t host_tokens = 0;
  std::int64_t effective_tokens = 0;  ///< with those that stay in device memory
  outcome result;

  std::int64_t host_bytes() const { return host_tokens * tier.bytes_per_token; }
  std::int64_t encoded_bytes() const { return result.encoded_tokens * tier.bytes_per_token; }
  std::int64_t restored_bytes() const { return result.restored_tokens * tier.bytes_per_token; }
};

struct experiment {
  std::string name;
  std::string what;  ///< in a few words
  std::vector<tier_run> runs;
};

/// A tier over a range of budgets or workloads: mean hit rates, and bytes of all together.
struct sweep_line {
  tier_sizes tier;
  std::vector<double> hit_rates;  ///< one for each point of the sweep
  std::int64_t encoded_bytes = 0;
  std::int64_t restored_bytes = 0;
};

struct sweep {
  std::string what;                  ///< the workload in a few words
  std::vector<std::int64_t> points;  ///< numbers of groups, or budgets in bytes
  std::vector<sweep_line> lines;
};

/// Requests of the user's own, and what serves them.
struct own_requests {
  std::string name;
  workload requests;
  model_shape model;
  std::int64_t budget = 0;
  std::int64_t device_tokens = 0;  ///< of the device's pool
};

inline constexpr std::int64_t published_budget = 8'000'000'000;
inline constexpr int sweep_seeds = 10;
inline constexpr int budget_groups = 128;

/// The published workload: groups of four requests that share a prefix of 2150 tokens, shuffled as
/// Python does it. `warm` sends request 0 twice, and counts the second.
workload shared_prefixes(int groups, std::uint32_t seed, bool warm);

experiment equal_tokens();  ///< A: bf16 and INT8 with 54,254 tokens each
experiment equal_bytes();   ///< B: bf16 and INT8 with 8e9 bytes each
experiment run_own(own_requests const& own);

sweep sweep_groups();  ///< over 32 to 192 groups at `published_budget`, seeds 0 to 9
/// Over budgets from an eighth of the published (or own) one to eight times as much.
sweep sweep_budgets();  ///< with `budget_groups` groups, the same seeds
sweep sweep_budgets(own_requests const& own);

/// Throw `tool_error` where nothing was restored: that says nothing about a tier.
void require_restored(experiment const& e);
void require_restored(sweep const& s);

}  // namespace kvarts::tool
