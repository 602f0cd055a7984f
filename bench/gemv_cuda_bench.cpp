// SPDX-License-Identifier: Apache-2.0
/// @file
/// q.K^T and p.V of the compiled kernels on a device, for the codecs of all presets: 10 launches to
/// warm up, 100 measured one by one, each on memory that left the L2 cache long before. bytes/s
/// counts codes and parameters, `copy` is the part that this is of a device-to-device copy's bytes
/// (read and written) in the same run. Names are product/codec/KV heads/query heads/tokens.
/// Without a device it says so and exits with 0, after --require-device with 77.

#include "support/cuda/device_memory.hpp"

#include <kvarts/cuda/gemv.hpp>
#include <kvarts/kvarts.hpp>
#include <kvarts/scheme.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace kvarts;
using test::device_array;
using test::must;

constexpr int head_dim = 128;
constexpr int warm_ups = 10;
constexpr int runs = 100;
/// Codes and scales of every type are finite numbers when all bytes are this; time does not depend
/// on them.
constexpr int any_byte = 0x2C;

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

class stopwatch {
 public:
  stopwatch() {
    must(cudaEventCreate(&begin_));
    must(cudaEventCreate(&end_));
  }
  stopwatch(stopwatch const&) = delete;
  stopwatch& operator=(stopwatch const&) = delete;
  ~stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }

  /// Seconds that the device takes for what `f` enqueues.
  template <class F>
  double seconds(F&& f) {
    must(cudaEventRecord(begin_, nullptr));
    f();
    must(cudaEventRecord(end_, nullptr));
    must(cudaEventSynchronize(end_));
    float milliseconds = 0.0f;
    must(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return double{milliseconds} * 1e-3;
  }

 private:
  cudaEvent_t begin_{};
  cudaEvent_t end_{};
};

cudaDeviceProp const& device() {
  static cudaDeviceProp const properties = [] {
    cudaDeviceProp p{};
    must(cudaGetDeviceProperties(&p, 0));
    return p;
  }();
  return properties;
}

/// Bytes a second, read and written, of the fastest of ten copies.
double copy_bandwidth() {
  static double const result = [] {
    constexpr std::size_t size = std::size_t{1} << 29;
    device_array<std::byte> const from(size), to(size);
    must(cudaMemset(from.data(), any_byte, size));
    stopwatch watch;
    double best = 1e9;
    for (int i = 0; i < 10; ++i) {
      best = std::min(best, watch.seconds([&] {
        must(cudaMemcpyAsync(to.data(), from.data(), size, cudaMemcpyDeviceToDevice, nullptr));
      }));
    }
    return 2.0 * static_cast<double>(size) / best;
  }();
  return result;
}

/// Copies of one sequence's codes that together are four times as large as the L2 cache.
template <class Codec, class Packing>
struct rotating_codes {
  explicit rotating_codes(shape const& s)
      : map(make_head_tiles<Codec, Packing>(s.heads, head_dim, s.tokens)),
        stride(round_up(map.size_bytes(), 256)),
        copies(std::max<std::int64_t>(2, ceil_div(4 * std::int64_t{device().l2CacheSize}, stride))),
        memory(static_cast<std::size_t>(stride * copies)),
        end(&s.tokens, 1) {
    must(cudaMemset(memory.data(), any_byte, memory.size()));
    batch.max_tokens = s.tokens;
    batch.ends = end.data();
  }

  view<Codec, std::byte const, Packing> next() {
    turn = (turn + 1) % copies;
    return {memory.data() + turn * stride, map, {}};
  }

  layout map;
  std::int64_t stride;
  std::int64_t copies;
  std::int64_t turn = 0;
  device_array<std::byte> memory;
  device_array<std::int64_t> end;
  cuda::batch batch;
};

/// Measures `launch()`, which reads `bytes` bytes of codes and parameters.
template <class F>
void measure(benchmark::State& state, std::int64_t bytes, F&& launch) {
  stopwatch watch;
  for (int i = 0; i < warm_ups; ++i) must(launch());
  for (auto _ : state) state.SetIterationTime(watch.seconds([&] { must(launch()); }));
  double const all = static_cast<double>(state.iterations() * bytes);
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["copy"] = benchmark::Counter(all / copy_bandwidth(), benchmark::Counter::kIsRate);
}

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
    benchmark::RegisterBenchmark(row.c_str(), [=](benchmark::State& state) { run(state, s); })
        ->UseManualTime()
        ->Iterations(runs)
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool const required = argc > 1 && std::string_view(argv[1]) == "--require-device";
  if (required) std::rotate(argv + 1, argv + 2, argv + argc--);
  if (!kvarts::test::find_device()) return required ? 77 : 0;
  kvarts::for_each_preset([](auto const& preset) {
    using scheme_type = std::remove_cvref_t<decltype(preset)>;
    add<typename scheme_type::key_codec>("qk", qk<typename scheme_type::key_codec>);
    add<typename scheme_type::value_codec>("pv", pv<typename scheme_type::value_codec>);
  });
  benchmark::AddCustomContext("device", device().name);
  benchmark::AddCustomContext("copy_gbytes_per_second", std::to_string(copy_bandwidth() * 1e-9));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
