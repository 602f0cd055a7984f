// SPDX-License-Identifier: Apache-2.0
/// @file
/// The sequences that one launch works on.
#pragma once

#include <cstdint>

namespace kvarts::cuda {

/// Sequences of one launch; every pointer is to device memory and read while the kernel runs, so a
/// captured graph follows lengths that change. Sequence i spans tokens `begins[i]` (0 where
/// `begins` is null) to `ends[i] - 1`, at most `max_tokens`, and may be empty. With pages, its
/// tokens are in the pages of row i of `block_tables` `[sequences, table_stride]`, and the layout
/// is the pool's; without, its data begins `sequence_stride` bytes after that of sequence i - 1.
struct batch {
  std::int32_t sequences = 1;
  std::int64_t max_tokens = 0;
  std::int64_t const* begins = nullptr;
  std::int64_t const* ends = nullptr;
  std::int32_t const* block_tables = nullptr;
  std::int64_t table_stride = 0;
  std::int64_t sequence_stride = 0;
};

}  // namespace kvarts::cuda
