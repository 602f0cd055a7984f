// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain K or V as numbers, and the same in an engine's memory: any element type, any strides.
#pragma once

#include "support/random.hpp"

#include <kvarts/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kvarts::test {

/// Numbers `[tokens, heads, head_dim]`, a contiguous float32 tensor.
struct rows {
  int heads = 0;
  int head_dim = 0;
  std::int64_t tokens = 0;
  std::vector<float> values;

  rows(int heads_, int head_dim_, std::int64_t tokens_, float value = 0.0f)
      : heads(heads_),
        head_dim(head_dim_),
        tokens(tokens_),
        values(static_cast<std::size_t>(tokens_ * heads_ * head_dim_), value) {}

  std::size_t index(std::int64_t token, int head, int channel) const {
    return static_cast<std::size_t>((token * heads + head) * head_dim + channel);
  }
  float& at(std::int64_t token, int head, int channel) {
    return values[index(token, head, channel)];
  }
  float at(std::int64_t token, int head, int channel) const {
    return values[index(token, head, channel)];
  }

  source_view source() const {
    return make_tensor(static_cast<float const*>(values.data()), heads, head_dim, tokens);
  }
  target_view target() { return make_tensor(values.data(), heads, head_dim, tokens); }
};

/// N(0, 1).
inline rows normal_rows(random_source& random, int heads, int head_dim, std::int64_t tokens) {
  rows r(heads, head_dim, tokens);
  for (float& x : r.values) x = static_cast<float>(random.normal());
  return r;
}

/// Memory of a tensor: every byte that no element owns is `gap`.
struct plain_memory {
  std::vector<std::byte> bytes;
  std::size_t begin = 0;  ///< of token 0, head 0
  dtype type = dtype::f32;
  layout map{};

  source_view source() const { return {bytes.data() + begin, type, map, {}}; }
  target_view target() { return {bytes.data() + begin, type, map, {}}; }
};

inline void store(std::byte* to, dtype type, float x) {
  if (type == dtype::f16) store_unaligned(to, saturate<half>(x));
  if (type == dtype::bf16) store_unaligned(to, saturate<bfloat16>(x));
  if (type == dtype::f32) store_unaligned(to, x);
}

/// `r` with these strides (in elements), `begin` bytes into its memory.
inline plain_memory strided(rows const& r, dtype type, tensor_strides strides,
                            std::size_t begin = 0, std::byte gap = std::byte{0x7F}) {
  plain_memory m;
  m.type = type;
  m.begin = begin;
  m.map = make_tensor_layout(type, r.heads, r.head_dim, r.tokens, strides);
  std::int64_t const size = element_size(type);
  std::int64_t const last = strides.token * (r.tokens - 1) + strides.head * (r.heads - 1);
  m.bytes.assign(begin + static_cast<std::size_t>((last + r.head_dim) * size), gap);
  for (std::int64_t t = 0; t < r.tokens; ++t) {
    for (int h = 0; h < r.heads; ++h) {
      for (int d = 0; d < r.head_dim; ++d) {
        std::int64_t const element = strides.token * t + strides.head * h + d;
        store(m.bytes.data() + begin + element * size, type, r.at(t, h, d));
      }
    }
  }
  return m;
}

/// `r` as a contiguous tensor.
inline plain_memory contiguous_memory(rows const& r, dtype type, order o = order::token_major) {
  return strided(r, type, contiguous(o, r.heads, r.head_dim, r.tokens));
}

}  // namespace kvarts::test
