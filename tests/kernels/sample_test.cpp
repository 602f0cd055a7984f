// SPDX-License-Identifier: Apache-2.0
// Real queries, keys and values: coded attention through the kernels' products errs as much as
// through the host's.
#define KVARTS_HEAD_DIMS 64
#define KVARTS_BLOCKS 32
#include "dump.hpp"
#include "eval_attention.hpp"
#include "support/catch.hpp"

#include <kvarts/kernels/gemv.cuh>
#include <kvarts/kvarts.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace kvarts;

/// What softmax attention of one query token makes of scores.
std::vector<float> softmax(std::vector<float> scores, std::size_t heads, double scale) {
  std::size_t const tokens = scores.size() / heads;
  for (std::size_t h = 0; h < heads; ++h) {
    double highest = -1e300, sum = 0.0;
    for (std::size_t t = 0; t < tokens; ++t) {
      highest = std::max(highest, double{scores[h * tokens + t]} * scale);
    }
    for (std::size_t t = 0; t < tokens; ++t) {
      sum += std::exp(double{scores[h * tokens + t]} * scale - highest);
    }
    for (std::size_t t = 0; t < tokens; ++t) {
      float& s = scores[h * tokens + t];
      s = static_cast<float>(std::exp(double{s} * scale - highest) / sum);
    }
  }
  return scores;
}

/// One layer of the sample, all its tokens coded, and some of its queries.
template <class K, class V>
class coded_layer {
 public:
  using key_packing = fragment<operand::keys>;
  using value_packing = fragment<operand::values>;

  coded_layer(tool::dump const& d, tool::dump_layer const& l)
      : dump_(d),
        layer_(l),
        transform_(calibrate(l.k, *l.q)),
        keys_(make_head_tiles<K, key_packing>(d.kv_heads, d.head_dim, d.tokens)),
        values_(make_head_tiles<V, value_packing>(d.kv_heads, d.head_dim, d.tokens)),
        key_bytes_(static_cast<std::size_t>(keys_.size_bytes() / 16)),
        value_bytes_(static_cast<std::size_t>(values_.size_bytes() / 16)) {
    view<K, std::byte, key_packing> const k{bytes(key_bytes_), keys_, {}};
    view<V, std::byte, value_packing> const v{bytes(value_bytes_), values_, {}};
    REQUIRE(encode(k, l.k, {0, d.tokens}, transform_.view()).code == status::ok);
    REQUIRE(encode(v, *l.v, {0, d.tokens}, rotation_only()).code == status::ok);
  }

  /// Errors of the outputs of query token `token` through kernels and through the host.
  void add_errors(std::int64_t token, tool::squared_error& device,
                  tool::squared_error& host) const {
    auto const heads = static_cast<std::size_t>(dump_.q_heads);
    auto const dim = static_cast<std::size_t>(dump_.head_dim);
    int const shared = dump_.q_heads / dump_.kv_heads;
    std::vector<float> queries(heads * dim), bias(heads);
    std::vector<double> exact_bias(heads);
    for (std::size_t h = 0; h < heads; ++h) {
      float* const q = queries.data() + h * dim;
      detail::load_finite(*layer_.q, static_cast<int>(h), token, q);
      exact_bias[h] =
          fold_query(transform_.view(), static_cast<int>(h) / shared, dump_.head_dim, q, q);
      bias[h] = static_cast<float>(exact_bias[h]);
    }
    auto const exact = exact_outputs(token);
    add(device, exact, device_outputs(queries, bias));
    add(host, exact, host_outputs(queries, exact_bias));
  }

 private:
  struct alignas(16) chunk {
    std::byte bytes[16];
  };
  static std::byte* bytes(std::vector<chunk>& c) { return c.data()->bytes; }
  static std::byte const* bytes(std::vector<chunk> const& c) { return c.data()->bytes; }

  static transform_view rotation_only() {
    transform_view t;
    t.rotate = {1, 1};
    return t;
  }

  double scale() const { return 1.0 / std::sqrt(static_cast<double>(dump_.head_dim)); }

  std::vector<float> device_outputs(std::vector<float> const& queries,
                                    std::vector<float> const& bias) const {
    std::int64_t const end = dump_.tokens;
    cuda::batch const b{.max_tokens = end, .ends = &end};
    std::vector<float> scores(bias.size() * static_cast<std::size_t>(end)), output(queries.size());
    REQUIRE(cuda::gemv_qk(view<K, std::byte const, key_packing>{bytes(key_bytes_), keys_, {}}, b,
                          dump_.q_heads, queries.data(), bias.data(), scores.data(),
                          nullptr) == cudaSuccess);
    auto const p = softmax(scores, bias.size(), scale());
    auto const plan = cuda::plan_gemv_pv(values_, b, dump_.q_heads, 2);
    std::vector<float> scratch(plan.scratch_bytes / sizeof(float) + 1);
    REQUIRE(cuda::gemv_pv(view<V, std::byte const, value_packing>{bytes(value_bytes_), values_, {}},
                          b, dump_.q_heads, p.data(), output.data(), plan, scratch.data(),
                          nullptr) == cudaSuccess);
    return unrotated(std::move(output));
  }

  std::vector<float> host_outputs(std::vector<float> const& queries,
                                  std::vector<double> const& bias) const {
    token_range const all{0, dump_.tokens};
    std::vector<float> scores(bias.size() * static_cast<std::size_t>(dump_.tokens));
    std::vector<float> output(queries.size());
    REQUIRE(gemv_qk(view<K, std::byte const, key_packing>{bytes(key_bytes_), keys_, {}}, all,
                    dump_.q_heads, queries.data(), bias.data(), scores.data()) == status::ok);
    auto const p = softmax(scores, bias.size(), scale());
    REQUIRE(gemv_pv(view<V, std::byte const, value_packing>{bytes(value_bytes_), values_, {}}, all,
                    dump_.q_heads, p.data(), output.data()) == status::ok);
    return unrotated(std::move(output));
  }

  std::vector<float> unrotated(std::vector<float> output) const {
    for (std::size_t at = 0; at < output.size(); at += static_cast<std::size_t>(dump_.head_dim)) {
      unrotate({1, 1}, dump_.head_dim, output.data() + at);
    }
    return output;
  }

  std::vector<double> exact_outputs(std::int64_t token) const {
    std::vector<double> outputs;
    std::vector<float> q(static_cast<std::size_t>(dump_.head_dim)), row = q;
    for (int h = 0; h < dump_.q_heads; ++h) {
      int const head = h / (dump_.q_heads / dump_.kv_heads);
      detail::load_finite(*layer_.q, h, token, q.data());
      std::vector<double> weights;
      double sum = 0.0;
      for (std::int64_t t = 0; t < dump_.tokens; ++t) {
        detail::load_finite(layer_.k, head, t, row.data());
        double score = 0.0;
        for (std::size_t d = 0; d < q.size(); ++d) score += double{q[d]} * row[d];
        weights.push_back(score * scale());
      }
      double const highest = *std::max_element(weights.begin(), weights.end());
      for (double& w : weights) sum += w = std::exp(w - highest);
      std::vector<double> output(q.size());
      for (std::int64_t t = 0; t < dump_.tokens; ++t) {
        detail::load_finite(*layer_.v, head, t, row.data());
        for (std::size_t d = 0; d < q.size(); ++d) {
          output[d] += weights[static_cast<std::size_t>(t)] / sum * double{row[d]};
        }
      }
      outputs.insert(outputs.end(), output.begin(), output.end());
    }
    return outputs;
  }

  static void add(tool::squared_error& e, std::vector<double> const& exact,
                  std::vector<float> const& found) {
    for (std::size_t i = 0; i < exact.size(); ++i) {
      double const difference = double{found[i]} - exact[i];
      e += {difference * difference, exact[i] * exact[i]};
    }
  }

  tool::dump const& dump_;
  tool::dump_layer const& layer_;
  transform transform_;
  layout keys_;
  layout values_;
  std::vector<chunk> key_bytes_;
  std::vector<chunk> value_bytes_;
};

template <class Preset>
void require_same_figures(Preset const& preset) {
  CAPTURE(std::string(preset.name));
  auto const file =
      tool::open_safetensors(std::string(KVARTS_EXAMPLE_DATA) + "/sample.safetensors");
  tool::dump const d = tool::read_dump(file.contents, "sample");
  for (auto const& layer : d.layers) {
    CAPTURE(layer.layer);
    coded_layer<typename Preset::key_codec, typename Preset::value_codec> const coded(d, layer);
    tool::squared_error device, host;
    for (std::int64_t token = 3; token < d.queries; token += 31) {
      coded.add_errors(token, device, host);
    }
    double const of_device = std::sqrt(device.relative()), of_host = std::sqrt(host.relative());
    CAPTURE(of_device, of_host);
    CHECK(of_host > 1e-5);
    CHECK(std::fabs(of_device / of_host - 1.0) < 0.01);
  }
}

TEST_CASE("k4v4 to k2v2 on the sample give the host's figures within 1%") {
  require_same_figures(preset::k4v4);
  require_same_figures(preset::k4v3);
  require_same_figures(preset::k4v2);
  require_same_figures(preset::k3v3);
  require_same_figures(preset::k3v2);
  require_same_figures(preset::k2v2);
}

}  // namespace
