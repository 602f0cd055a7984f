// SPDX-License-Identifier: Apache-2.0
// Decode attention on a CUDA device: keys and values are coded there, and one launch reads codes
// and the 16-bit first and last tokens. The host does the same as a reference, and alone where
// there is no device.

#include <kvarts/kvarts.hpp>

#if EXAMPLE_ON_CUDA
#include <kvarts/cuda/attention.hpp>
#include <kvarts/cuda/encode.hpp>
#endif

#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using kvarts::half, kvarts::fragment, kvarts::operand;

constexpr int tokens = 2000, query_heads = 8, heads = 2, head_dim = 128;
constexpr auto preset = kvarts::preset::k3v3;
using key_codec = decltype(preset)::key_codec;
using value_codec = decltype(preset)::value_codec;
using key_packing = fragment<operand::keys>;
using value_packing = fragment<operand::values>;
using cache_view = kvarts::cache_view<key_codec, value_codec, key_packing, value_packing>;

/// All that attention reads, in host memory or on a device.
struct places {
  std::byte* key_codes;
  std::byte* value_codes;
  half const* keys;  ///< [tokens, heads, head_dim]
  half const* values;
  std::int64_t const* lengths;
  kvarts::transform_view const* transforms;
};

/// The rows of a plain tensor from one position on.
kvarts::source_view rows(half const* all, std::int64_t begin, std::int64_t end) {
  return kvarts::make_tensor(all + begin * heads * head_dim, heads, head_dim, end - begin);
}

/// The windows are the plain rows where they lie: a ring that never turns.
kvarts::window_planes<std::byte const> windows_of(half const* all) {
  constexpr int sinks = preset.window.sink;
  return {{rows(all, 0, sinks), rows(all, sinks, tokens)}, 0, 0};
}

cache_view view_of(places const& p) {
  auto const keys = kvarts::make_head_tiles<key_codec, key_packing>(heads, head_dim, tokens);
  auto const values = kvarts::make_head_tiles<value_codec, value_packing>(heads, head_dim, tokens);
  return {.keys = {p.key_codes, keys, {}},
          .values = {p.value_codes, values, {}},
          .key_windows = windows_of(p.keys),
          .value_windows = windows_of(p.values),
          .window = preset.window,
          .sequences = 1,
          .lengths = p.lengths,
          .transforms = p.transforms,
          .value_rotation = kvarts::value_rotation(preset.values)};
}

/// What is coded of the keys, and of the values: both codecs have one scale a row.
kvarts::token_range coded() {
  auto const parts = kvarts::partition_after(tokens, preset.window, 1);
  return {parts.sinks, parts.coded_end};
}

struct inputs {
  std::vector<half> keys, values;
  std::vector<float> queries;  ///< [query_heads, head_dim]
  kvarts::transform transform;
};

inputs random_inputs() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  inputs in;
  for (auto* rows : {&in.keys, &in.values}) {
    for (int i = 0; i < tokens * heads * head_dim; ++i) rows->push_back(half(normal(random)));
  }
  for (int i = 0; i < query_heads * head_dim; ++i) in.queries.push_back(normal(random));
  in.transform = kvarts::calibrate(
      rows(in.keys.data(), 0, tokens),
      kvarts::make_tensor(std::as_const(in.queries).data(), query_heads, head_dim, 1));
  return in;
}

/// Output `[query_heads, head_dim]`.
std::vector<float> attend_on_host(inputs const& in) {
  std::int64_t const length = tokens;
  kvarts::transform_view const transform = in.transform.view();
  places p{nullptr, nullptr, in.keys.data(), in.values.data(), &length, &transform};
  std::vector<std::byte> key_codes(static_cast<std::size_t>(view_of(p).keys.map.size_bytes()));
  std::vector<std::byte> value_codes(static_cast<std::size_t>(view_of(p).values.map.size_bytes()));
  p.key_codes = key_codes.data();
  p.value_codes = value_codes.data();
  auto const view = view_of(p);
  auto const [begin, end] = coded();
  kvarts::encode(kvarts::view<key_codec, std::byte, key_packing>{p.key_codes, view.keys.map, {}},
                 rows(p.keys, begin, end), {begin, end}, transform);
  kvarts::encode(
      kvarts::view<value_codec, std::byte, value_packing>{p.value_codes, view.values.map, {}},
      rows(p.values, begin, end), {begin, end}, {nullptr, nullptr, 0, view.value_rotation});
  std::vector<float> output(query_heads * head_dim);
  kvarts::attention(view, 1, query_heads, in.queries.data(), output.data(), nullptr);
  std::size_t const windows = static_cast<std::size_t>(tokens - (end - begin)) * heads * head_dim;
  std::printf("%d tokens of %d KV heads: %zu KiB of codes and 16-bit windows instead of %zu KiB\n",
              tokens, heads, (key_codes.size() + value_codes.size() + 4 * windows) / 1024,
              4 * in.keys.size() / 1024);
  return output;
}

#if EXAMPLE_ON_CUDA

void must(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

struct freed_on_device {
  void operator()(void* p) const { cudaFree(p); }
};
template <class T>
using device_array = std::unique_ptr<T[], freed_on_device>;

/// `count` values on the device, zeros or a copy.
template <class T>
device_array<T> on_device(std::size_t count, T const* from = nullptr) {
  void* p = nullptr;
  must(cudaMalloc(&p, count * sizeof(T)));
  device_array<T> result(static_cast<T*>(p));
  must(from != nullptr ? cudaMemcpy(p, from, count * sizeof(T), cudaMemcpyHostToDevice)
                       : cudaMemset(p, 0, count * sizeof(T)));
  return result;
}

/// Why there is no device, or an empty text.
std::string missing_device() {
  int devices = 0;
  auto const code = cudaGetDeviceCount(&devices);
  if (code != cudaSuccess) return cudaGetErrorString(code);
  return devices == 0 ? "there are 0 devices" : "";
}

std::vector<float> attend_on_device(inputs const& in) {
  auto const keys = on_device(in.keys.size(), in.keys.data());
  auto const values = on_device(in.values.size(), in.values.data());
  auto const center = on_device(in.transform.center.size(), in.transform.center.data());
  auto const norm = on_device(in.transform.norm.size(), in.transform.norm.data());
  kvarts::transform_view const transform{center.get(), norm.get(), head_dim, in.transform.rotate};
  auto const transforms = on_device(1, &transform);
  std::int64_t const length = tokens;
  auto const lengths = on_device(1, &length);
  places p{nullptr, nullptr, keys.get(), values.get(), lengths.get(), transforms.get()};
  auto const key_codes =
      on_device<std::byte>(static_cast<std::size_t>(view_of(p).keys.map.size_bytes()));
  auto const value_codes =
      on_device<std::byte>(static_cast<std::size_t>(view_of(p).values.map.size_bytes()));
  p.key_codes = key_codes.get();
  p.value_codes = value_codes.get();
  auto const queries = on_device(in.queries.size(), in.queries.data());
  auto const output = on_device<float>(query_heads * head_dim);
  int multiprocessors = 0;
  must(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  cudaStream_t const stream = nullptr;

  // [attention on CUDA]
  cache_view const view = view_of(p);  // codes, 16-bit rows, lengths: all in device memory
  auto const [begin, end] = coded();
  kvarts::cuda::rows which;
  which.max_tokens = end - begin;
  which.begin = begin;
  kvarts::view<key_codec, std::byte, key_packing> to_keys{p.key_codes, view.keys.map, {}};
  must(kvarts::cuda::encode(to_keys, rows(p.keys, begin, end), which, transform, nullptr, stream));
  kvarts::view<value_codec, std::byte, value_packing> to_values{p.value_codes, view.values.map, {}};
  must(kvarts::cuda::encode(to_values, rows(p.values, begin, end), which,
                            {nullptr, nullptr, 0, view.value_rotation}, nullptr, stream));

  kvarts::cuda::attention_request request;
  request.queries = queries.get();
  request.query_type = kvarts::dtype::f32;
  request.output = output.get();
  request.output_type = kvarts::dtype::f32;
  request.query_heads = query_heads;
  auto const plan = kvarts::cuda::plan_attention(view, request, multiprocessors);
  auto const scratch = on_device<std::byte>(plan.scratch_bytes);  // zeros
  must(kvarts::cuda::attention(view, request, plan, scratch.get(), stream));
  // [attention on CUDA]

  std::vector<float> result(query_heads * head_dim);
  must(cudaMemcpy(result.data(), output.get(), result.size() * sizeof(float),
                  cudaMemcpyDeviceToHost));
  return result;
}

#else

std::string missing_device() { return "this was built without kvarts::cuda"; }
std::vector<float> attend_on_device(inputs const&) { return {}; }

#endif

}  // namespace

int main() {
  auto const in = random_inputs();
  auto const expected = attend_on_host(in);
  if (auto const why = missing_device(); !why.empty()) {
    std::printf("No CUDA device to compare with (%s): that was the host's attention.\n",
                why.c_str());
    return 0;
  }
  auto const found = attend_on_device(in);
  double error = 0.0, size = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(double{found[i]} - expected[i], 2);
    size += std::pow(double{expected[i]}, 2);
  }
  double const relative = std::sqrt(error / size);
  std::printf("error of the device's output relative to the host's: %.2g\n", relative);
  return relative < 0.01 ? 0 : 1;
}
