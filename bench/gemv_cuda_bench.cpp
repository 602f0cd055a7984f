// SPDX-License-Identifier: Apache-2.0
/// @file
/// q.K^T and p.V of the compiled kernels on a device, for the codecs of all presets. bytes/s counts
/// codes and parameters, `copy` is the part that this is of a device-to-device copy's bytes (read
/// and written) in the same run. Names are product/codec/KV heads/query heads/tokens. Without a
/// device it says so and exits with 0, after --require-device with 77.

#include "cuda_bench.hpp"

#include <kvarts/cuda/gemv.hpp>
#include <kvarts/scheme.hpp>

#include <set>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::bench;

constexpr int head_dim = 128;

struct shape {
  int heads;
  int query_heads;
  std::int64_t tokens;
};

constexpr shape shapes[] = {
    {32, 32, 512},  {32, 32, 1024},  {32, 32, 2048},  {32, 32, 4096},
    {32, 32, 8192}, {32, 32, 16384}, {32, 32, 32768}, {8, 32, 8192},
    {8, 32, 32768}, {8, 64, 32768},  {4, 64, 32768},
};

/// One sequence's codes.
template <class Codec, class Packing>
struct rotating_codes {
  explicit rotating_codes(shape const& s)
      : map(make_head_tiles<Codec, Packing>(s.heads, head_dim, s.tokens)),
        memory(map.size_bytes()),
        end(&s.tokens, 1) {
    batch.max_tokens = s.tokens;
    batch.ends = end.data();
  }

  view<Codec, std::byte const, Packing> next() { return {memory.next(), map, {}}; }

  layout map;
  rotating_memory memory;
  device_array<std::int64_t> end;
  cuda::batch batch;
};

template <class Codec>
void qk(benchmark::State& state, shape s) {
  rotating_codes<Codec, fragment<operand::keys>> codes(s);
  std::vector<float> const ones(static_cast<std::size_t>(s.query_heads * head_dim), 1.0f);
  device_array<float> const queries(ones);
  device_array<float> const scores(static_cast<std::size_t>(s.query_heads * s.tokens));
  measure(state, codes.map.size_bytes(), [&] {
    return cuda::gemv_qk(codes.next(), codes.batch, s.query_heads, queries.data(), nullptr,
                         scores.data(), nullptr);
  });
}

template <class Codec>
void pv(benchmark::State& state, shape s) {
  rotating_codes<Codec, fragment<operand::values>> codes(s);
  std::vector<float> const equal(static_cast<std::size_t>(s.query_heads * s.tokens),
                                 1.0f / static_cast<float>(s.tokens));
  device_array<float> const weights(equal);
  device_array<float> const output(static_cast<std::size_t>(s.query_heads * head_dim));
  auto const plan =
      cuda::plan_gemv_pv(codes.map, codes.batch, s.query_heads, device().multiProcessorCount);
  device_array<std::byte> const scratch(plan.scratch_bytes);
  measure(state, codes.map.size_bytes(), [&] {
    return cuda::gemv_pv(codes.next(), codes.batch, s.query_heads, weights.data(), output.data(),
                         plan, scratch.data(), nullptr);
  });
}

/// One row for each shape, unless the product of this codec has its rows already.
template <class Codec>
void add(char const* product, void (*run)(benchmark::State&, shape)) {
  static std::set<std::string> known;
  auto const name = std::string(product) + '/' + std::string(std::string_view(Codec::name()));
  if (!known.insert(name).second) return;
  for (shape const& s : shapes) {
    auto const row = name + '/' + std::to_string(s.heads) + '/' + std::to_string(s.query_heads) +
                     '/' + std::to_string(s.tokens);
    add_row(row, [=](benchmark::State& state) { run(state, s); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_on_device(argc, argv, [] {
    for_each_preset([](auto const& preset) {
      using scheme_type = std::remove_cvref_t<decltype(preset)>;
      add<typename scheme_type::key_codec>("qk", qk<typename scheme_type::key_codec>);
      add<typename scheme_type::value_codec>("pv", pv<typename scheme_type::value_codec>);
    });
  });
}
