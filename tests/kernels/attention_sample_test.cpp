// SPDX-License-Identifier: Apache-2.0
// Real queries, keys and values: attention of the kernel errs as much as the host's reference on
// the same codes and windows.
#define KVARTS_HEAD_DIMS 64
#define KVARTS_BLOCKS 32
#define KVARTS_CHANNEL_GROUPS 32
#define KVARTS_COLUMN_TILES 1
#define KVARTS_WINDOW_TYPES half
#include "dump.hpp"
#include "eval_attention.hpp"
#include "support/attention/attention_checks.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

void add(tool::squared_error& e, double found, double exact) {
  e += {(found - exact) * (found - exact), exact * exact};
}

rows rows_of(source_view const& tensor) {
  rows r(tensor.map.heads, tensor.map.head_dim, tensor.map.tokens);
  for (std::int64_t t = 0; t < r.tokens; ++t) {
    for (int h = 0; h < r.heads; ++h) detail::load_finite(tensor, h, t, &r.at(t, h, 0));
  }
  return r;
}

/// The transform that a preset has for keys.
transform transform_of(key_transform kind, tool::dump const& d, tool::dump_layer const& l) {
  if (needs_calibration(kind)) return calibrate(l.k, *l.q, key_rotation(kind));
  if (needs_data(kind)) return innerq_norm(l.k, d.prefill());
  return {d.kv_heads, d.head_dim, {}, {}, key_rotation(kind)};
}

/// Errors of the last query token of a layer; the rows before it are the sequence.
template <class Cache>
void add_errors(Cache const& cache, tool::dump_layer const& l, std::int64_t query,
                tool::squared_error& device, tool::squared_error& host) {
  attention_case const& c = cache.shape;
  random_source unused(1);
  attention_run run(c, unused);
  rows const q = rows_of(*l.q);
  for (int h = 0; h < c.query_heads; ++h) {
    for (int d = 0; d < c.key_dim; ++d) {
      auto const at = static_cast<std::size_t>(h * c.key_dim + d);
      run.exact_queries[at] = q.at(query, h, d);
      store(run.queries.data() + at * sizeof(float), dtype::f32, run.exact_queries[at]);
    }
  }
  auto const request = run.request(c);
  auto const plan = cuda::plan_attention(cache.view(), request, 2);
  aligned_bytes scratch = new_scratch(plan);
  REQUIRE(cuda::attention(cache.view(), request, plan, scratch.data(), nullptr) == cudaSuccess);
  std::vector<float> on_host(run.exact_queries.size());
  REQUIRE(attention(cache.view(), 1, c.query_heads, run.exact_queries.data(), on_host.data(),
                    nullptr) == status::ok);

  rows const k = rows_of(l.k), v = rows_of(*l.v);
  int const shared = c.query_heads / c.heads;
  for (int h = 0; h < c.query_heads; ++h) {
    auto const first = static_cast<std::size_t>(h * c.key_dim);
    auto const exact = attend_exactly(
        c, c.length(0), run.exact_queries.data() + first, -std::numeric_limits<double>::infinity(),
        [&](std::int64_t t, int d) { return double{k.at(t, h / shared, d)}; },
        [&](std::int64_t t, int d) { return double{v.at(t, h / shared, d)}; },
        [](std::int64_t) { return true; });
    for (std::size_t d = 0; d < exact.output.size(); ++d) {
      add(device, run.at(c, first + d), exact.output[d]);
      add(host, double{on_host[first + d]}, exact.output[d]);
    }
  }
}

template <class K, class V>
void require_same_errors(scheme<K, V> const& preset) {
  CAPTURE(std::string(preset.name));
  auto const file =
      tool::open_safetensors(std::string(KVARTS_EXAMPLE_DATA) + "/sample.safetensors");
  tool::dump const d = tool::read_dump(file.contents, "sample");
  for (auto const& layer : d.layers) {
    CAPTURE(layer.layer);
    attention_case c{.heads = d.kv_heads, .query_heads = d.q_heads};
    c.key_dim = c.value_dim = d.head_dim;
    c.window = preset.window;
    c.value_rotation = value_rotation(preset.values);
    tool::squared_error device, host;
    for (std::int64_t query = sanitized ? d.queries - 1 : 3; query < d.queries; query += 31) {
      std::int64_t const length = d.prefill() + query + 1;
      c.lengths = {length};
      rows k = rows_of(layer.k), v = rows_of(*layer.v);
      for (rows* r : {&k, &v}) {
        r->values.resize(r->index(length, 0, 0));
        r->tokens = length;
      }
      coded_cache<K, V> const cache(c, transform_of(preset.keys, d, layer), {k}, {v});
      REQUIRE(cache.keys.ok());
      REQUIRE(cache.values.ok());
      add_errors(cache, layer, query, device, host);
    }
    double const of_device = std::sqrt(device.relative()), of_host = std::sqrt(host.relative());
    CAPTURE(of_device, of_host);
    CHECK(of_host > 1e-4);
    CHECK(std::fabs(of_device / of_host - 1.0) < 0.01);
  }
}

TEST_CASE("attention errs on the sample as the host's does, within 1%") {
  require_same_errors(preset::k3v2);
  require_same_errors(preset::innerq_hybrid);
  require_same_errors(preset::kivi);
  require_same_errors(preset::turboquant);
}

}  // namespace
