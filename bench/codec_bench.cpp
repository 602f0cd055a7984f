// SPDX-License-Identifier: Apache-2.0
/// @file
/// Encode, decode and GEMV of the host reference, one thread: bytes/s count the 16-bit input
/// (encode), the 16-bit output (decode) and the bytes of codes and parameters read (GEMV); items
/// are numbers. `memcpy` of the same input is the yardstick. Run: `codec_bench
/// --benchmark_repetitions=5
/// --benchmark_report_aggregates_only=true` and quote medians.

#include <kvarts/kvarts.hpp>

#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kvarts;

constexpr int heads = 8;
constexpr int head_dim = 128;
constexpr std::int64_t tokens = 2048;
constexpr std::int64_t numbers = tokens * heads * head_dim;
constexpr int query_heads = 32;

std::vector<half> const& input() {
  static std::vector<half> const values = [] {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<half> v(numbers);
    for (half& x : v) x = half(normal(random));
    return v;
  }();
  return values;
}

template <class Codec>
struct coded {
  layout map = make_head_tiles<Codec>(heads, head_dim, tokens);
  std::vector<std::byte> memory =
      std::vector<std::byte>(static_cast<std::size_t>(map.size_bytes()));
  view<Codec> codes{memory.data(), map, {}};

  encode_result fill(transform_view const& t = {}) {
    return encode(codes, make_tensor(input().data(), heads, head_dim, tokens), {0, tokens}, t);
  }
};

void report(benchmark::State& state, std::int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetItemsProcessed(state.iterations() * numbers);
}

template <class Codec>
void encode_codec(benchmark::State& state, transform_view t) {
  coded<Codec> c;
  for (auto _ : state) benchmark::DoNotOptimize(c.fill(t));
  report(state, numbers * 2);
}

template <class Codec>
void decode_codec(benchmark::State& state) {
  coded<Codec> c;
  c.fill();
  std::vector<half> out(numbers);
  auto const target = make_tensor(out.data(), heads, head_dim, tokens);
  for (auto _ : state) benchmark::DoNotOptimize(decode_coded(c.codes, target, {0, tokens}));
  report(state, numbers * 2);
}

template <class Codec>
void qk(benchmark::State& state) {
  coded<Codec> c;
  c.fill();
  std::vector<float> queries(query_heads * head_dim, 0.5f);
  std::vector<float> scores(query_heads * tokens);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        gemv_qk(c.codes, {0, tokens}, query_heads, queries.data(), nullptr, scores.data()));
  }
  report(state, c.map.size_bytes());
}

template <class Codec>
void pv(benchmark::State& state) {
  coded<Codec> c;
  c.fill();
  std::vector<float> weights(query_heads * tokens, 1.0f / tokens);
  std::vector<float> output(query_heads * head_dim);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        gemv_pv(c.codes, {0, tokens}, query_heads, weights.data(), output.data()));
  }
  report(state, c.map.size_bytes());
}

void copy(benchmark::State& state) {
  std::vector<half> out(numbers);
  for (auto _ : state) {
    std::memcpy(out.data(), input().data(), numbers * sizeof(half));
    benchmark::ClobberMemory();
  }
  report(state, numbers * 2);
}

/// Registers all four for one codec; row codecs are encoded after a rotation too, as presets use
/// them.
template <class Codec>
void add(std::string suffix) {
  std::string const name = std::string(std::string_view(Codec::name())) + suffix;
  auto const label = [&](char const* what) { return std::string(what) + "/" + name; };
  benchmark::RegisterBenchmark(label("encode").c_str(), encode_codec<Codec>, transform_view{});
  if constexpr (Codec::grouped_along == axis::row && !Codec::plain) {
    benchmark::RegisterBenchmark((label("encode") + "_rotated").c_str(), encode_codec<Codec>,
                                 transform_view{nullptr, nullptr, 0, {1, 1}});
  }
  benchmark::RegisterBenchmark(label("decode").c_str(), decode_codec<Codec>);
  benchmark::RegisterBenchmark(label("gemv_qk").c_str(), qk<Codec>);
  benchmark::RegisterBenchmark(label("gemv_pv").c_str(), pv<Codec>);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("memcpy", copy);
  add<identity<half>>("");
  add<row_codec<int8_head>>("");
  for_each_codec([](auto tag) {
    using Codec = typename decltype(tag)::type;
    if constexpr (Codec::grouped_along != axis::row && Codec::bits <= 4) {
      add<Codec>(Codec::grouped_along == axis::channel ? "_by_channel" : "_by_token");
    } else if constexpr (!Codec::plain && Codec::bits <= 8 && Codec::scale_bytes == 2 &&
                         !std::is_same_v<Codec, row_codec<int8_head>>) {
      if constexpr (Codec::grouped_along == axis::row) add<Codec>("");
    }
  });
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
