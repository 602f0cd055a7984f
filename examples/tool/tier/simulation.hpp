// SPDX-License-Identifier: Apache-2.0
/// @file
/// A two-tier prefix cache, as a deterministic simulation: which prefixes a sequence of requests
/// finds again when the least recently used tokens leave first.
#pragma once

#include <cstdint>
#include <vector>

namespace kvarts::tool {

/// A part of a prompt that requests share: a prefix, or a block of one.
struct prefix_use {
  std::uint32_t id = 0;  ///< counts from 0 in a workload
  std::int64_t tokens = 0;
};

struct request {
  std::vector<prefix_use> prefixes;  ///< from the first token on; none twice
  std::int64_t new_tokens = 0;       ///< tokens behind them that stay in the cache
  double prompt_tokens = 0;
  bool counted = true;    ///< one that only warms the cache is not, and is done before the next
  bool repeated = false;  ///< the prompt of the request before it: found whole, question included
};

struct workload {
  std::vector<request> requests;
  std::uint32_t prefix_count = 0;
};

/// Tokens that the cache holds before the least recently used are lost, and how many of these are
/// still in device memory and need no restoring.
struct cache_room {
  std::int64_t tokens = 0;
  std::int64_t device_tokens = 0;
};

struct outcome {
  std::int64_t requests = 0;
  std::int64_t hits = 0;  ///< requests that found some of their prompt
  double prompt_tokens = 0;
  double hit_tokens = 0;
  std::int64_t encoded_tokens = 0;   ///< computed, and so written to the host
  std::int64_t restored_tokens = 0;  ///< found in the host tier alone

  double hit_rate() const { return prompt_tokens > 0 ? hit_tokens / prompt_tokens : 0; }
};

/// Strict LRU. A prefix is found when the tokens touched since its last use (other prefixes, each
/// once, and the new tokens of the requests between) fit into the room, and all parts of the prompt
/// before it are found. What a request computes is visible one batch later: a prefix used first by
/// one of the two requests before is computed again.
outcome simulate(workload const& w, cache_room room);

}  // namespace kvarts::tool
