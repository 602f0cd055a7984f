// SPDX-License-Identifier: Apache-2.0
// Scores of queries with coded keys. The keys have constant channels, as models with key biases do;
// a calibrated transform takes them out and the query takes the transform back.

#include <kvarts/kvarts.hpp>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace {

constexpr int tokens = 512, query_heads = 4, heads = 2, head_dim = 64;
using key_codec = kvarts::row_codec<kvarts::midrise<3>>;

/// Root mean square error of the scores when keys are coded after `transform`.
double score_error(std::vector<kvarts::half> const& keys, std::vector<float> const& queries,
                   kvarts::transform_view const& transform) {
  auto const source = kvarts::make_tensor(keys.data(), heads, head_dim, tokens);

  // [gemv]
  auto const layout = kvarts::make_head_tiles<key_codec>(heads, head_dim, tokens);
  std::vector<std::byte> memory(static_cast<std::size_t>(layout.size_bytes()));
  kvarts::view<key_codec> codes{memory.data(), layout, {}};
  kvarts::encode(codes, source, {0, tokens}, transform);

  std::vector<float> folded(queries.size()), scores(query_heads * tokens);
  std::vector<double> bias(query_heads);
  for (int i = 0; i < query_heads; ++i) {
    bias[i] = kvarts::fold_query(transform, i / (query_heads / heads), head_dim,
                                 &queries[i * head_dim], &folded[i * head_dim]);
  }
  kvarts::gemv_qk(codes, {0, tokens}, query_heads, folded.data(), bias.data(), scores.data());
  // [gemv]

  double square = 0.0;
  for (int i = 0; i < query_heads; ++i) {
    for (int t = 0; t < tokens; ++t) {
      double exact = 0.0;
      for (int d = 0; d < head_dim; ++d) {
        int const head = i / (query_heads / heads);
        exact += double{queries[i * head_dim + d]} * keys[(t * heads + head) * head_dim + d];
      }
      square += (scores[i * tokens + t] - exact) * (scores[i * tokens + t] - exact);
    }
  }
  return std::sqrt(square / (query_heads * tokens));
}

}  // namespace

int main() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<kvarts::half> keys(tokens * heads * head_dim);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    bool const constant = i % head_dim == 7 || i % head_dim == 40;
    keys[i] = kvarts::half(normal(random) + (constant ? 200.0f : 0.0f));
  }
  std::vector<float> queries(query_heads * head_dim);
  for (float& q : queries) q = normal(random);

  auto const key_rows = kvarts::make_tensor(std::as_const(keys).data(), heads, head_dim, tokens);
  auto const query_rows =
      kvarts::make_tensor(std::as_const(queries).data(), query_heads, head_dim, 1);
  kvarts::transform const calibrated = kvarts::calibrate(key_rows, query_rows);

  double const plain = score_error(keys, queries, {});
  double const cured = score_error(keys, queries, calibrated.view());
  std::printf("3-bit keys: score error %.3f plain, %.3f with center, norm and rotation\n", plain,
              cured);
  return cured < 0.1 * plain ? 0 : 1;
}
