// SPDX-License-Identifier: Apache-2.0
// Scores with coded keys on the device, as an engine would ask for them, against those of the host.
#pragma once

#include "../support/cuda/device_memory.hpp"

#include <kvarts/cuda/gemv.hpp>
#include <kvarts/kvarts.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

/// The exit status: 0 where there is no device too.
template <class Codec>
int gemv_on_device() {
  using kvarts::test::device_array;
  using keys = kvarts::fragment<kvarts::operand::keys>;
  constexpr int tokens = 70, heads = 2, query_heads = 6, head_dim = 128;
  std::vector<float> rows(tokens * heads * head_dim), queries(query_heads * head_dim);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < queries.size(); ++i) queries[i] = std::cos(static_cast<float>(3 * i));

  auto const map = kvarts::make_head_tiles<Codec, keys>(heads, head_dim, tokens);
  std::vector<std::byte> memory(static_cast<std::size_t>(map.size_bytes()));
  kvarts::view<Codec, std::byte, keys> const codes{memory.data(), map, {}};
  float const* const plain = rows.data();
  auto const source = kvarts::make_tensor(plain, heads, head_dim, tokens);
  if (kvarts::encode(codes, source, {0, tokens}).code != kvarts::status::ok) return 1;

  kvarts::cuda::batch batch;
  batch.max_tokens = tokens;
  std::int64_t const end = tokens;
  batch.ends = &end;  // on the host: enough to ask whether kernels serve this
  kvarts::view<Codec, std::byte const, keys> readable = codes;
  if (kvarts::cuda::explain_gemv(kvarts::operand::keys, readable, batch, query_heads)) return 1;
  if (!kvarts::test::find_device()) return 0;

  device_array<std::byte> const device_codes(memory);
  device_array<std::int64_t> const device_end(&end, 1);
  device_array<float> const device_queries(queries), scores(query_heads * tokens);
  batch.ends = device_end.data();
  readable.data = device_codes.data();
  kvarts::test::must(kvarts::cuda::gemv_qk(readable, batch, query_heads, device_queries.data(),
                                           nullptr, scores.data(), nullptr));
  std::vector<float> expected(query_heads * tokens);
  kvarts::gemv_qk(codes, {0, tokens}, query_heads, queries.data(), nullptr, expected.data());
  auto const found = scores.host();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::fabs(found[i] - expected[i]) <= 0.05f) continue;
    std::printf("score %zu is %g instead of %g\n", i, found[i], expected[i]);
    return 1;
  }
  return 0;
}
