// SPDX-License-Identifier: Apache-2.0
/// @file
/// Attention of the kernel in the emulator against float64.
#pragma once

#include "support/attention/attention_run.hpp"
#include "support/simt/for_each_schedule.hpp"

#include <kvarts/kernels/attention.cuh>

#include <cstdint>
#include <string>
#include <vector>

namespace kvarts::test {

/// Scratch of a plan as its first launch needs it.
inline aligned_bytes new_scratch(cuda::attention_plan const& plan) {
  aligned_bytes scratch;
  scratch.resize(static_cast<std::int64_t>(plan.scratch_bytes));
  std::memset(scratch.data(), 0, plan.scratch_bytes);
  return scratch;
}

/// One launch in each schedule, with both kinds of copies, on a device of `multiprocessors`.
template <class K, class V>
void check_attention(attention_case const& c, std::uint64_t seed, int multiprocessors = 1) {
  CAPTURE(std::string(std::string_view(K::name())), std::string(std::string_view(V::name())),
          c.heads, c.query_heads, c.key_dim, c.value_dim, c.tile_tokens, c.group, c.page_tokens,
          c.query_tokens, multiprocessors);
  random_source random(seed);
  coded_cache<K, V> const cache(c, random);
  REQUIRE(cache.keys.ok());
  REQUIRE(cache.values.ok());
  attention_run run(c, random);
  auto const view = cache.view();
  auto const request = run.request(c);
  INFO(cuda::explain_attention(view, request).sentence());
  auto const plan = cuda::plan_attention(view, request, multiprocessors);
  aligned_bytes scratch = new_scratch(plan);
  std::vector<std::byte> first;
  for (bool const bulk : {false, true}) {
    kernels::simt::bulk_copies = bulk;
    kernels::simt::for_each_schedule([&](auto const&) {
      std::fill(run.output.begin(), run.output.end(), std::byte{0xFF});
      REQUIRE(cuda::attention(view, request, plan, scratch.data(), nullptr) == cudaSuccess);
      if (first.empty()) first = run.output;
      REQUIRE((run.output == first));  // in brackets: not to be printed
    });
  }
  require_exact(cache, run);
}

}  // namespace kvarts::test
