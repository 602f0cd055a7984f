// SPDX-License-Identifier: Apache-2.0
/// @file
/// Decode attention of the compiled kernels on a device: microseconds of a layer's one launch, for
/// presets of every kind and 16-bit rows, in pages that lie in no order. bytes/s counts codes,
/// parameters and windows; `copy` is the part that this is of a device-to-device copy's bytes (read
/// and written) in the same run. Names are attention/preset/KV heads/query heads/tokens/batch.
/// Without a device it says so and exits with 0, after --require-device with 77.

#include "cuda_bench.hpp"
#include "support/cuda/compiled_presets.hpp"

#include <kvarts/cuda/attention.hpp>

#include <set>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::bench;

constexpr int head_dim = 128;
constexpr int page_tokens = 64;

struct shape {
  int heads;
  int query_heads;
  std::int64_t tokens;
  int batch;
};

/// 8 KV heads for 32 query heads at all lengths, and other ratios at one.
std::vector<shape> shapes() {
  std::vector<shape> all;
  for (int const batch : {1, 8, 32}) {
    for (std::int64_t tokens = 512; tokens <= 131072; tokens *= 2) {
      all.push_back({8, 32, tokens, batch});
    }
    all.push_back({32, 32, 32768, batch});
    all.push_back({8, 64, 32768, batch});
    all.push_back({4, 64, 32768, batch});
  }
  return all;
}

/// Where one of K and V of all sequences lies in memory: codes, then sinks, then recent rows.
template <class Codec, class Packing>
class side {
 public:
  side(shape const& s, windows w)
      : batch_(s.batch),
        codes_(make_pages<Codec, Packing>(s.heads, head_dim,
                                          s.batch * ceil_div(s.tokens, page_tokens), page_tokens)),
        parts_(partition_after(s.tokens, w, eviction_step(Codec::grouped_along, codes_.group))),
        sinks_(rows(s.heads, parts_.sinks)),
        recents_(rows(s.heads, std::max<std::int64_t>(parts_.recent(), 1))) {}

  std::int64_t codes_size() const { return round_up(codes_.size_bytes(), 256); }
  std::int64_t size() const {
    return codes_size() + batch_ * (sinks_.size_bytes() + recents_.size_bytes());
  }

  /// Bytes that a launch has to read.
  std::int64_t bytes_read() const {
    std::int64_t const rows = parts_.sinks + parts_.recent();
    return codes_.size_bytes() / codes_.tokens * parts_.coded() * batch_ +
           rows * batch_ * codes_.heads * head_dim * 2;
  }

  view<Codec, std::byte const, Packing> codes(std::byte const* memory) const {
    return {memory, codes_, {}};
  }

  window_planes<std::byte const> windows_at(std::byte const* memory) const {
    std::byte const* const sinks = memory + codes_size();
    std::byte const* const recents = sinks + batch_ * sinks_.size_bytes();
    return {{{sinks, dtype::f16, sinks_, {}}, {recents, dtype::f16, recents_, {}}},
            sinks_.size_bytes(),
            recents_.size_bytes()};
  }

 private:
  static layout rows(int heads, std::int64_t tokens) {
    return plan_tensor(dtype::f16, heads, head_dim, tokens,
                       contiguous(order::token_major, heads, head_dim, tokens));
  }

  int batch_;
  layout codes_;
  partition parts_;
  layout sinks_;
  layout recents_;
};

/// Pages of the pool, in no order.
std::vector<std::int32_t> scattered(std::int64_t pages) {
  constexpr std::int64_t stride = 7919;  // a prime: every page comes once
  std::vector<std::int32_t> table;
  for (std::int64_t i = 0; i < pages; ++i) {
    table.push_back(static_cast<std::int32_t>(i * stride % pages));
  }
  return table;
}

/// The transforms of a preset's keys for all sequences, with a center and norm of small numbers.
template <class Preset>
class key_transforms {
 public:
  key_transforms(Preset const& p, shape const& s)
      : numbers_(std::vector<float>(static_cast<std::size_t>(s.heads * head_dim), 1.0f)),
        views_(std::vector<transform_view>(
            static_cast<std::size_t>(s.batch),
            {needs_calibration(p.keys) ? numbers_.data() : nullptr,
             needs_data(p.keys) ? numbers_.data() : nullptr, head_dim, key_rotation(p.keys)})) {}

  transform_view const* data() const { return views_.data(); }

 private:
  device_array<float> numbers_;
  device_array<transform_view> views_;
};

/// Attention of one launch after another, each on other memory.
template <class Preset>
void attend(benchmark::State& state, Preset const& preset, shape s) {
  using key_codec = typename Preset::key_codec;
  using value_codec = typename Preset::value_codec;
  using key_packing = fragment<operand::keys>;
  using value_packing = fragment<operand::values>;
  side<key_codec, key_packing> const keys(s, preset.window);
  side<value_codec, value_packing> const values(s, preset.window);
  std::int64_t const values_at = round_up(keys.size(), 256);
  std::int64_t const size = values_at + values.size();
  std::size_t free = 0, total = 0;
  must(cudaMemGetInfo(&free, &total));
  if (rotating_memory::size_for(size) > static_cast<std::int64_t>(free / 10 * 9)) {
    return state.SkipWithError("the device has too little memory");
  }
  rotating_memory memory(size);
  std::int64_t const pages = ceil_div(s.tokens, page_tokens);
  device_array<std::int32_t> const table(scattered(pages * s.batch));
  auto const batch = static_cast<std::size_t>(s.batch);
  device_array<std::int64_t> const lengths(std::vector<std::int64_t>(batch, s.tokens));
  key_transforms const transforms(preset, s);
  std::size_t const query_rows = batch * static_cast<std::size_t>(s.query_heads);
  device_array<half> const queries(std::vector<half>(query_rows * head_dim, half(1.0f)));
  device_array<half> const output(query_rows * head_dim);

  cuda::attention_request request;
  request.queries = queries.data();
  request.output = output.data();
  request.query_heads = s.query_heads;
  auto const cache = [&](std::byte const* at) {
    return cache_view<key_codec, value_codec, key_packing, value_packing>{
        .keys = keys.codes(at),
        .values = values.codes(at + values_at),
        .key_windows = keys.windows_at(at),
        .value_windows = values.windows_at(at + values_at),
        .window = preset.window,
        .block_tables = table.data(),
        .table_stride = pages,
        .sequences = s.batch,
        .lengths = lengths.data(),
        .transforms = transforms.data(),
        .value_rotation = value_rotation(preset.values)};
  };
  auto const plan =
      cuda::plan_attention(cache(memory.next()), request, device().multiProcessorCount);
  device_array<std::byte> const scratch(plan.scratch_bytes);
  must(cudaMemset(scratch.data(), 0, scratch.size()));
  measure(state, keys.bytes_read() + values.bytes_read(), [&] {
    return cuda::attention(cache(memory.next()), request, plan, scratch.data(), nullptr);
  });
}

/// One preset for each pair of formats: others run the same kernels.
std::set<std::string_view> const measured{
    "fp16",       "int8", "int4", "innerq_base", "innerq_hybrid", "innerq_small", "kivi",
    "turboquant", "k8v8", "k4v4", "k4v2",        "k3v3",          "k3v2",         "k2v2"};

template <class Preset>
void add(Preset const& preset) {
  if (measured.count(preset.name) == 0) return;
  for (shape const& s : shapes()) {
    std::string row = "attention/" + std::string(preset.name);
    for (std::int64_t const n :
         {std::int64_t{s.heads}, std::int64_t{s.query_heads}, s.tokens, std::int64_t{s.batch}}) {
      row += '/' + std::to_string(n);
    }
    add_row(row, [=](benchmark::State& state) { attend(state, preset, s); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_on_device(argc, argv, [] {
    std::apply([](auto const&... preset) { (add(preset), ...); }, kvarts::test::attention_presets);
  });
}
