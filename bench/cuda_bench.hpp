// SPDX-License-Identifier: Apache-2.0
/// @file
/// What benchmarks of kernels on a device share: 10 launches to warm up, 100 measured one by one,
/// each on memory that left the L2 cache long before.
#pragma once

#include "support/cuda/device_memory.hpp"

#include <kvarts/kvarts.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvarts::bench {

using test::device_array;
using test::must;

inline constexpr int warm_ups = 10;
inline constexpr int runs = 100;
/// Codes and scales of every type are finite numbers when all bytes are this; time does not depend
/// on them.
inline constexpr int any_byte = 0x2C;

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

inline cudaDeviceProp const& device() {
  static cudaDeviceProp const properties = [] {
    cudaDeviceProp p{};
    must(cudaGetDeviceProperties(&p, 0));
    return p;
  }();
  return properties;
}

/// Bytes a second, read and written, of the fastest of ten copies.
inline double copy_bandwidth() {
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

/// Copies of what a launch reads that together are four times as large as the L2 cache.
class rotating_memory {
 public:
  explicit rotating_memory(std::int64_t bytes)
      : stride_(stride_of(bytes)),
        copies_(copies_of(bytes)),
        memory_(static_cast<std::size_t>(stride_ * copies_)) {
    must(cudaMemset(memory_.data(), any_byte, memory_.size()));
  }

  /// Bytes that copies of `bytes` bytes take.
  static std::int64_t size_for(std::int64_t bytes) { return stride_of(bytes) * copies_of(bytes); }

  std::byte* next() {
    turn_ = (turn_ + 1) % copies_;
    return memory_.data() + turn_ * stride_;
  }

 private:
  static std::int64_t stride_of(std::int64_t bytes) { return round_up(bytes, 256); }
  static std::int64_t copies_of(std::int64_t bytes) {
    return std::max<std::int64_t>(
        2, ceil_div(4 * std::int64_t{device().l2CacheSize}, stride_of(bytes)));
  }

  std::int64_t stride_;
  std::int64_t copies_;
  std::int64_t turn_ = 0;
  device_array<std::byte> memory_;
};

/// Measures `launch()`, which reads `bytes` bytes.
template <class F>
void measure(benchmark::State& state, std::int64_t bytes, F&& launch) {
  stopwatch watch;
  for (int i = 0; i < warm_ups; ++i) must(launch());
  for (auto _ : state) state.SetIterationTime(watch.seconds([&] { must(launch()); }));
  double const all = static_cast<double>(state.iterations() * bytes);
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["copy"] = benchmark::Counter(all / copy_bandwidth(), benchmark::Counter::kIsRate);
}

/// A row of the table: `run(state)`.
template <class F>
void add_row(std::string const& name, F&& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->UseManualTime()
      ->Iterations(runs)
      ->Unit(benchmark::kMicrosecond);
}

/// `add_rows()`, then all rows, on a device; without one says so and returns 0, after
/// --require-device 77.
template <class F>
int run_on_device(int argc, char** argv, F&& add_rows) {
  bool const required = argc > 1 && std::string_view(argv[1]) == "--require-device";
  if (required) std::rotate(argv + 1, argv + 2, argv + argc--);
  if (!test::find_device()) return required ? 77 : 0;
  add_rows();
  benchmark::AddCustomContext("device", device().name);
  benchmark::AddCustomContext(
      "arch", "sm_" + std::to_string(device().major) + std::to_string(device().minor));
  benchmark::AddCustomContext("copy_gbytes_per_second", std::to_string(copy_bandwidth() * 1e-9));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace kvarts::bench
