// SPDX-License-Identifier: Apache-2.0
/// @file
/// A batch of sequences in pages, one after another in a plain tensor.
#pragma once

#include <kvarts/cuda/rows.hpp>
#include <kvarts/view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <support/random.hpp>
#include <utility>
#include <vector>

namespace kvarts::test {

/// Sequences of these lengths from these tokens on; their pages are shuffled in a pool.
struct paged_batch {
  int page_tokens = 0;
  std::int64_t table_stride = 0;
  std::vector<std::int32_t> cu_seqlens{0};
  std::vector<std::int64_t> begins;
  std::vector<std::int32_t> tables;  ///< [sequences, table_stride]
  std::int64_t pages = 0;

  paged_batch(random_source& random, int page, std::vector<std::int64_t> const& lengths,
              std::vector<std::int64_t> first_tokens)
      : page_tokens(page), begins(std::move(first_tokens)) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      cu_seqlens.push_back(cu_seqlens.back() + static_cast<std::int32_t>(lengths[i]));
      table_stride = std::max(table_stride, ceil_div(begins[i] + lengths[i], page));
    }
    pages = table_stride * static_cast<std::int64_t>(lengths.size());
    tables.resize(static_cast<std::size_t>(pages));
    std::iota(tables.begin(), tables.end(), 0);
    for (std::size_t i = tables.size(); i > 1; --i) {
      std::swap(tables[i - 1],
                tables[static_cast<std::size_t>(random.between(0, static_cast<int>(i) - 1))]);
    }
  }

  int sequences() const { return static_cast<int>(begins.size()); }
  std::int64_t rows() const { return cu_seqlens.back(); }
  token_range range(int i) const {
    auto const k = static_cast<std::size_t>(i);
    return {begins[k], begins[k] + cu_seqlens[k + 1] - cu_seqlens[k]};
  }
  block_table table(int i) const { return {tables.data() + i * table_stride, table_stride}; }

  /// As a launch takes it.
  cuda::rows device() const {
    cuda::rows r;
    r.sequences = sequences();
    r.begins = begins.data();
    r.block_tables = tables.data();
    r.table_stride = table_stride;
    r.cu_seqlens = cu_seqlens.data();
    return r;
  }
};

/// The rows of one sequence of a plain tensor.
template <class Byte>
tensor_view<Byte> rows_of(tensor_view<Byte> all, paged_batch const& b, int sequence) {
  auto const i = static_cast<std::size_t>(sequence);
  all.data += b.cu_seqlens[i] * all.map.codes.tile_stride;
  all.map.tokens = b.cu_seqlens[i + 1] - b.cu_seqlens[i];
  return all;
}

}  // namespace kvarts::test
