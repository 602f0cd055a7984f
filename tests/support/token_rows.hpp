// SPDX-License-Identifier: Apache-2.0
/// @file
/// Keys and values of a sequence of tokens, and how they enter a cache.
#pragma once

#include "support/any_cache.hpp"

#include <cstdint>
#include <numeric>
#include <utility>

namespace kvarts::test {

/// `x` as its type holds it.
inline rows rounded(rows x, dtype type) {
  for (float& value : x.values) {
    if (type == dtype::f16) value = half(value);
    if (type == dtype::bf16) value = bfloat16(value);
  }
  return x;
}

/// N(0, 1) keys and values of one type, as numbers and in memory.
struct token_rows {
  rows k, v;
  plain_memory keys, values;

  token_rows(rows k_, rows v_, dtype type)
      : k(rounded(std::move(k_), type)),
        v(rounded(std::move(v_), type)),
        keys(contiguous_memory(k, type)),
        values(contiguous_memory(v, type)) {}

  token_rows(random_source& random, cache_options const& o, std::int64_t count,
             dtype type = dtype::f16)
      : token_rows(normal_rows(random, o.heads, o.key_dim, count),
                   normal_rows(random, o.heads, o.value_dim, count), type) {}

  encode_result append_to(any_cache& c, int sequence, std::int64_t from, std::int64_t count) const {
    return c.append(sequence, slice(keys.source(), from, count),
                    slice(values.source(), from, count));
  }
};

/// A page that both codecs of a scheme can have.
inline std::int32_t page_size(any_scheme const& s) {
  return std::lcm(std::lcm(s.key_step, s.value_step), 16);
}

}  // namespace kvarts::test
