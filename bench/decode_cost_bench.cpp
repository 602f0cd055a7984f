// SPDX-License-Identifier: Apache-2.0
/// @file
/// What quantization costs a decoded token, by preset: the mean over 32 steps of appending one
/// token to the paged cache of one layer. Keys are coded at each step and values at each 32nd where
/// they are grouped along tokens (and the reverse), both at each step where neither is.
#include <kvarts/kvarts.hpp>

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kvarts;

constexpr int heads = 8;
constexpr int head_dim = 128;
constexpr int prefill = 256;  // windows are full, and whole groups have left them
constexpr int steps = 32;
constexpr std::int32_t room = 8192;

/// Rows of the prefill and of the steps.
std::vector<half> const& input() {
  static std::vector<half> const values = [] {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<half> v(std::size_t{prefill + steps} * heads * head_dim);
    for (half& x : v) x = half(normal(random));
    return v;
  }();
  return values;
}

source_view rows(int first, int count) {
  return make_tensor(input().data() + std::ptrdiff_t{first} * heads * head_dim, heads, head_dim,
                     count);
}

/// A cache after the prefill.
template <class Cache, class Scheme>
void begin(Cache& c, Scheme const& preset) {
  c.clear();
  c.append(rows(0, prefill), rows(0, prefill));
  if (c.frozen()) return;
  transform t = needs_calibration(preset.keys) ? calibrate(rows(0, prefill), rows(0, prefill))
                                               : innerq_norm(rows(0, prefill), prefill);
  t.rotate = key_rotation(preset.keys);
  c.freeze(t);
}

template <class KeyCodec, class ValueCodec>
void append_tokens(benchmark::State& state, scheme<KeyCodec, ValueCodec> preset) {
  cache<KeyCodec, ValueCodec> c(
      preset, room,
      {.heads = heads, .key_dim = head_dim, .value_dim = head_dim, .prefill_room = prefill});
  begin(c, preset);
  for (auto _ : state) {
    if (c.length() + steps > room) {
      state.PauseTiming();
      begin(c, preset);
      state.ResumeTiming();
    }
    for (int i = 0; i < steps; ++i) {
      auto const result = c.append(rows(prefill + i, 1), rows(prefill + i, 1));
      if (result.code != status::ok) state.SkipWithError("a token was not appended");
    }
  }
  state.SetItemsProcessed(state.iterations() * steps);
  state.counters["per_token"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * steps,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

int const registered = [] {
  for_each_preset([](auto const& preset) {
    benchmark::RegisterBenchmark(std::string(preset.name).c_str(),
                                 [preset](benchmark::State& s) { append_tokens(s, preset); });
  });
  return 0;
}();

}  // namespace
