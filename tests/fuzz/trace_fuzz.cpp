// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace of requests: an error, or a workload whose simulation adds up.
#include "fuzz_support.hpp"
#include "tier/simulation.hpp"
#include "tier/trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace kvarts;
  auto const parse = [](std::span<std::byte const> bytes, char const* name) {
    return tool::parse_trace({reinterpret_cast<char const*>(bytes.data()), bytes.size()}, name, 4);
  };
  auto const workload = fuzz::accepted(parse, fuzz::input(data, size));
  if (!workload) return 0;
  auto const o = tool::simulate(*workload, {100, 10});
  fuzz::require(o.requests == static_cast<std::int64_t>(workload->requests.size()));
  fuzz::require(o.hits <= o.requests && o.hit_tokens <= o.prompt_tokens);
  fuzz::require(o.encoded_tokens >= 0 && o.restored_tokens >= 0);
  fuzz::require(static_cast<double>(o.restored_tokens) <= o.hit_tokens);
  return 0;
}
