// SPDX-License-Identifier: Apache-2.0
/// @file
/// An engine's pool of plain K or V: pages or none, any strides, any element type, every element
/// known by its slot.
#pragma once

#include "support/rows.hpp"

#include <kvarts/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvarts::test {

/// How a pool lies in memory.
struct pool_shape {
  char const* name;
  dtype type;
  int page_tokens;  ///< 0: no pages
  order in_page;
  int gap;  ///< elements between rows that belong to nobody
};

inline std::vector<pool_shape> const& pool_shapes() {
  static std::vector<pool_shape> const shapes{
      {"slots of f16", dtype::f16, 0, order::token_major, 0},
      {"slots of bf16 with gaps", dtype::bf16, 0, order::token_major, 3},
      {"heads of float32", dtype::f32, 0, order::head_major, 0},
      {"pages of bf16, token-major", dtype::bf16, 8, order::token_major, 0},
      {"pages of f16, head-major, gaps", dtype::f16, 16, order::head_major, 5},
  };
  return shapes;
}

struct device_pool {
  pool_shape shape;
  int heads;
  int head_dim;
  std::int64_t slots;
  layout map;
  std::vector<std::byte> bytes;

  /// `slots` is a whole number of pages.
  device_pool(pool_shape const& s, int heads_, int head_dim_, std::int64_t slots_,
              std::byte before = std::byte{0x7F})
      : shape(s), heads(heads_), head_dim(head_dim_), slots(slots_) {
    std::int64_t const row = head_dim + s.gap;
    std::int64_t const tokens = s.page_tokens > 0 ? s.page_tokens : slots;
    bool const by_token = s.in_page == order::token_major;
    tensor_strides const strides{by_token ? heads * row : row, by_token ? row : tokens * row,
                                 s.page_tokens > 0 ? tokens * heads * row : 0};
    map = make_tensor_layout(s.type, heads, head_dim, slots, strides, s.page_tokens);
    bytes.assign(static_cast<std::size_t>(slots * heads * row * element_size(s.type)), before);
  }

  /// Where a row begins, counted by hand.
  std::byte* row(std::int64_t slot, int head) {
    std::int64_t const width = head_dim + shape.gap;
    std::int64_t const tokens = shape.page_tokens > 0 ? shape.page_tokens : slots;
    std::int64_t const page = slot / tokens;
    std::int64_t const in = slot % tokens;
    std::int64_t const index = shape.in_page == order::token_major
                                   ? (page * tokens + in) * heads + head
                                   : (page * heads + head) * tokens + in;
    return bytes.data() + index * width * element_size(shape.type);
  }

  void fill(random_source& random) {
    for (std::int64_t t = 0; t < slots; ++t) {
      for (int h = 0; h < heads; ++h) {
        for (int d = 0; d < head_dim; ++d) {
          store(row(t, h) + d * element_size(shape.type), shape.type,
                static_cast<float>(random.normal()));
        }
      }
    }
  }

  float load(std::int64_t slot, int head, int channel) {
    std::byte const* const from = row(slot, head) + channel * element_size(shape.type);
    if (shape.type == dtype::f16) return half::from_bits(load_unaligned<std::uint16_t>(from));
    if (shape.type == dtype::bf16) return bfloat16::from_bits(load_unaligned<std::uint16_t>(from));
    return load_unaligned<float>(from);
  }

  /// Some slots as a contiguous tensor.
  rows gathered(std::int64_t first, std::int64_t count) {
    rows r(heads, head_dim, count);
    for (std::int64_t i = 0; i < count; ++i) {
      for (int h = 0; h < heads; ++h) {
        for (int d = 0; d < head_dim; ++d) r.at(i, h, d) = load(first + i, h, d);
      }
    }
    return r;
  }

  /// The reverse, each number rounded to the pool's type.
  void scatter(rows const& r, std::int64_t first) {
    for (std::int64_t i = 0; i < r.tokens; ++i) {
      for (int h = 0; h < heads; ++h) {
        for (int d = 0; d < head_dim; ++d) {
          store(row(first + i, h) + d * element_size(shape.type), shape.type, r.at(i, h, d));
        }
      }
    }
  }

  source_view source() const { return {bytes.data(), shape.type, map, {}}; }
  target_view target() { return {bytes.data(), shape.type, map, {}}; }
};

}  // namespace kvarts::test
