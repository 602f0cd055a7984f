// SPDX-License-Identifier: Apache-2.0
/// @file
/// Attention of the shipped kernels on the device.
#pragma once

#include "support/attention/attention_run.hpp"
#include "support/cuda/device_cache.hpp"

#include <kvarts/cuda/attention.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvarts::test {

inline int multiprocessors() {
  int count = 0;
  must(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

/// A run's queries and masks in device memory, and room for its outputs and for scratch.
class device_run {
 public:
  device_run(attention_run& run, attention_case const& c, std::size_t scratch_bytes)
      : run_(run),
        queries_(run.queries),
        sinks_(run.sinks),
        trees_(run.trees),
        output_(run.output.size()),
        lse_(run.lse.size()),
        scratch_(scratch_bytes),
        request_(run.request(c)) {
    must(cudaMemset(scratch_.data(), 0, scratch_.size()));
    request_.queries = queries_.data();
    request_.output = output_.data();
    request_.lse = lse_.data();
    if (request_.sink_logits != nullptr) request_.sink_logits = sinks_.data();
    if (request_.tree_masks != nullptr) request_.tree_masks = trees_.data();
  }

  cuda::attention_request const& request() const { return request_; }
  void* scratch() const { return scratch_.data(); }

  /// Outputs that no launch has written.
  void clear() {
    must(cudaMemset(output_.data(), 0xFF, output_.size()));
    must(cudaMemset(lse_.data(), 0xFF, lse_.size() * sizeof(float)));
  }

  /// Outputs of what was enqueued, as those of the run.
  void fetch() {
    must(cudaDeviceSynchronize());
    run_.output = output_.host();
    run_.lse = lse_.host();
  }

 private:
  attention_run& run_;
  device_array<std::byte> queries_;
  device_array<float> sinks_;
  device_array<std::uint64_t> trees_;
  device_array<std::byte> output_;
  device_array<float> lse_;
  device_array<std::byte> scratch_;
  cuda::attention_request request_;
};

/// Two launches with the plan for this device, which share scratch, and one for a device of one
/// multiprocessor.
template <class K, class V>
void check_on_device(attention_case const& c, std::uint64_t seed) {
  CAPTURE(std::string(std::string_view(K::name())), std::string(std::string_view(V::name())),
          c.heads, c.query_heads, c.page_tokens, c.query_tokens);
  random_source random(seed);
  coded_cache<K, V> const cache(c, random);
  REQUIRE(cache.keys.ok());
  REQUIRE(cache.values.ok());
  attention_run run(c, random);
  device_cache const on_device(cache.view());
  auto const view = on_device.view();
  for (int const processors : {multiprocessors(), 1}) {
    CAPTURE(processors);
    auto const plan = cuda::plan_attention(view, run.request(c), processors);
    device_run launch(run, c, plan.scratch_bytes);
    INFO(cuda::explain_attention(view, launch.request()).sentence());
    for (int i = 0; i < 2; ++i) {
      launch.clear();
      REQUIRE(cuda::attention(view, launch.request(), plan, launch.scratch(), nullptr) ==
              cudaSuccess);
      launch.fetch();
      require_exact(cache, run);
    }
  }
}

}  // namespace kvarts::test
