// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which rows of a plain tensor are which tokens of which sequence.
#pragma once

#include <kvarts/cuda/batch.hpp>

#include <cstdint>

namespace kvarts::cuda {

/// The tokens of a batch as rows of a plain tensor. A ragged batch has its rows one sequence after
/// another: those of sequence i are rows `cu_seqlens[i]` to `cu_seqlens[i + 1] - 1` (int32 device
/// memory, `[sequences + 1]`, from 0 on), its first one token `begins[i]`; `ends` and `max_tokens`
/// are not read. Without `cu_seqlens` token t of sequence i is row `i * max_tokens + t -
/// begins[i]`, and without `ends` there are `max_tokens` of each. `begin` takes the place of
/// `begins` where that is null.
struct rows : batch {
  std::int32_t const* cu_seqlens = nullptr;
  std::int64_t begin = 0;
};

}  // namespace kvarts::cuda
