// SPDX-License-Identifier: Apache-2.0
// The attention that `kvarts::cuda` has compiled, on a device: presets, GQA, batches, queries of
// all kinds, and graphs that replay while sequences grow.
#include "attention_on_device.hpp"
#include "support/cuda/compiled_presets.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

using k3 = row_codec<midrise<3>>;
using v2 = row_codec<midrise<2>>;

template <class Preset>
void check_preset(Preset const& preset, std::uint64_t seed) {
  using keys = typename Preset::key_codec;
  using values = typename Preset::value_codec;
  CAPTURE(std::string(preset.name));
  windows const w = preset.window;
  check_on_device<keys, values>({.window = w, .lengths = {300}}, seed);
  check_on_device<keys, values>(
      {.heads = 1, .query_heads = 5, .page_tokens = 32, .window = w, .lengths = {33, 0, 517}},
      seed);
  check_on_device<keys, values>({.heads = 2, .query_heads = 32, .window = w, .lengths = {161, 640}},
                                seed);
}

TEST_CASE("attention of presets is that of the decoded rows") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  std::apply([&](auto const&... preset) { (check_preset(preset, seed), ...); }, attention_presets);
}

TEST_CASE("all kinds of queries", "[small]") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  check_on_device<k3, v2>({.lengths = {300, 141}, .query_tokens = 8}, seed);
  check_on_device<k3, v2>({.lengths = {300, 141}, .query_tokens = 3, .tree_tokens = 7}, seed);
  check_on_device<k3, v2>({.lengths = {517}, .soft_cap = 20.0f, .sliding_window = 200}, seed);
  check_on_device<k3, v2>({.lengths = {300, 0}, .scale = 0.2f, .sink_logits = true}, seed);
  for (dtype const type : {dtype::f16, dtype::bf16}) {
    check_on_device<k3, v2>({.lengths = {300}, .query_type = type, .output_type = type}, seed);
  }
}

TEST_CASE("long sequences, split as the device wants") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  check_on_device<k3, v2>({.query_heads = 8, .lengths = {5000, 4097}}, seed);
}

/// Launches in a graph, which replays on a stream of its own.
class captured {
 public:
  template <class F>
  explicit captured(F&& enqueue) {
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    must(enqueue(stream_));
    cudaGraph_t graph{};
    must(cudaStreamEndCapture(stream_, &graph));
    must(cudaGraphInstantiate(&runnable_, graph, 0));
    must(cudaGraphDestroy(graph));
  }
  captured(captured const&) = delete;
  captured& operator=(captured const&) = delete;
  ~captured() {
    cudaGraphExecDestroy(runnable_);
    cudaStreamDestroy(stream_);
  }

  void replay() const {
    must(cudaGraphLaunch(runnable_, stream_));
    must(cudaStreamSynchronize(stream_));
  }

 private:
  cudaStream_t stream_{};
  cudaGraphExec_t runnable_{};
};

TEST_CASE("a graph replays while a sequence grows") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  // The second sequence stays, and keeps the pool as large as it is.
  attention_case c{.query_heads = 8, .lengths = {0, 900}};
  random_source nothing(seed);
  coded_cache<k3, v2> const empty(c, nothing);
  device_cache on_device(empty.view());
  attention_run run(c, nothing);
  auto const plan = cuda::plan_attention(on_device.view(), run.request(c), multiprocessors());
  device_run launch(run, c, plan.scratch_bytes);
  captured const graph([&](cudaStream_t stream) {
    return cuda::attention(on_device.view(), launch.request(), plan, launch.scratch(), stream);
  });
  for (std::int64_t const length : {0, 1, 32, 129, 300, 301, 865}) {
    CAPTURE(length);
    c.lengths[0] = length;
    random_source random(seed);
    coded_cache<k3, v2> const grown(c, random);
    on_device.copy(grown.view());
    launch.clear();
    must(cudaDeviceSynchronize());
    graph.replay();
    launch.fetch();
    require_exact(grown, run);
  }
}

}  // namespace
