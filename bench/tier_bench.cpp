// SPDX-License-Identifier: Apache-2.0
/// @file
/// Pages of one layer to the host tier and back: encode_pages and decode_pages on 1 and 2 threads,
/// pages in order and scattered, and tokens scattered; bytes/s count the 16-bit rows. `memcpy` of
/// the same rows, page by page, is the yardstick of the same run. Run: `tier_bench
/// --benchmark_repetitions=5 --benchmark_report_aggregates_only=true` and quote medians.

#include <kvarts/kvarts.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;

constexpr int heads = 8;
constexpr int head_dim = 128;
constexpr int page_tokens = 64;
constexpr int pages = 256;
constexpr std::int64_t tokens = std::int64_t{pages} * page_tokens;
constexpr std::int64_t row_bytes = std::int64_t{heads} * head_dim * 2;

/// 32 MiB of an engine's slots `[tokens, heads, head_dim]`.
std::vector<half>& pool() {
  static std::vector<half> values = [] {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<half> v(static_cast<std::size_t>(tokens * heads * head_dim));
    for (half& x : v) x = half(normal(random));
    return v;
  }();
  return values;
}

/// Indices of units: the tier's in order, the pool's in order or scattered.
struct units {
  std::int64_t tokens_each;
  std::vector<std::int64_t> tier, pool;

  units(std::int64_t each, bool scattered) : tokens_each(each) {
    tier.resize(static_cast<std::size_t>(tokens / each));
    std::iota(tier.begin(), tier.end(), 0);
    pool = tier;
    if (scattered) {
      std::shuffle(pool.begin(), pool.end(), std::mt19937(1));
      std::shuffle(tier.begin(), tier.end(), std::mt19937(2));
    }
  }
  std::int64_t count() const { return std::ssize(tier); }
};

void report(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * tokens * row_bytes);
}

void copy(benchmark::State& state, units const& u, int threads) {
  std::vector<std::byte> to(static_cast<std::size_t>(tokens * row_bytes));
  auto const* const from = reinterpret_cast<std::byte const*>(pool().data());
  std::int64_t const bytes = u.tokens_each * row_bytes;
  for (auto _ : state) {
    kvarts::tier::detail::for_each_part(threads, [&](int part) {
      std::int64_t const end = u.count() * (part + 1) / threads;
      for (std::int64_t i = u.count() * part / threads; i < end; ++i) {
        auto const k = static_cast<std::size_t>(i);
        std::memcpy(to.data() + u.tier[k] * bytes, from + u.pool[k] * bytes,
                    static_cast<std::size_t>(bytes));
      }
    });
    benchmark::ClobberMemory();
  }
  report(state);
}

/// One layer of a tier and the memory for it.
template <class C>
struct tier_layer {
  geometry g = [] {
    geometry one = uniform_geometry(1, heads, segment_of<C>(head_dim), {});
    one.page_tokens = page_tokens;
    one.record = C::grouped_along == axis::token ? record_kind::page : record_kind::row;
    return one;
  }();
  std::vector<std::byte> memory =
      std::vector<std::byte>(static_cast<std::size_t>(size_bytes(g, side::keys, pages)));
  view<C> codes{memory.data(), make_layout(g, side::keys, 0, pages), {}};
};

template <class C>
void encode_units(benchmark::State& state, units const& u, int threads, transform_view t) {
  tier_layer<C> layer;
  auto const from = make_tensor(static_cast<half const*>(pool().data()), heads, head_dim, tokens);
  page_moves const moves{{u.tier.data(), u.pool.data(), u.count()}, u.tokens_each, threads};
  for (auto _ : state) {
    if (encode_pages(layer.codes, from, moves, t).code != status::ok) state.SkipWithError("bad");
  }
  report(state);
}

template <class C>
void decode_units(benchmark::State& state, units const& u, int threads, transform_view t) {
  tier_layer<C> layer;
  std::vector<half> out(pool().size());
  auto const from = make_tensor(static_cast<half const*>(pool().data()), heads, head_dim, tokens);
  auto const to = make_tensor(out.data(), heads, head_dim, tokens);
  encode_pages(layer.codes, from, {{u.tier.data(), u.pool.data(), u.count()}, u.tokens_each, 1}, t);
  page_moves const moves{{u.pool.data(), u.tier.data(), u.count()}, u.tokens_each, threads};
  for (auto _ : state) {
    if (decode_pages(layer.codes, to, moves, t) != status::ok) state.SkipWithError("bad");
  }
  report(state);
}

template <class C>
void add(std::string const& codec, std::string const& where, units const& u, int threads,
         transform_view t) {
  std::string const name = codec + "/" + where + "/threads:" + std::to_string(threads);
  benchmark::RegisterBenchmark(("encode/" + name).c_str(), encode_units<C>, u, threads, t)
      ->UseRealTime();
  benchmark::RegisterBenchmark(("decode/" + name).c_str(), decode_units<C>, u, threads, t)
      ->UseRealTime();
}

}  // namespace

int main(int argc, char** argv) {
  transform_view const rotated{nullptr, nullptr, 0, {1, 1}};
  for (auto const& [where, u] : {std::pair{"pages", units(page_tokens, false)},
                                 {"scattered_pages", units(page_tokens, true)},
                                 {"scattered_tokens", units(1, true)}}) {
    for (int const threads : {1, 2}) {
      std::string const name =
          std::string("memcpy/") + where + "/threads:" + std::to_string(threads);
      benchmark::RegisterBenchmark(name.c_str(), copy, u, threads)->UseRealTime();
      add<row_codec<int8_head>>("int8", where, u, threads, {});
      add<row_codec<midrise<8>>>("k8v8", where, u, threads, rotated);
      add<row_codec<midrise<4>>>("k4v4", where, u, threads, rotated);
      add<row_codec<midrise<3>>>("k3v3", where, u, threads, rotated);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
