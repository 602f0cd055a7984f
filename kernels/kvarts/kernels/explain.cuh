// SPDX-License-Identifier: Apache-2.0
/// @file
/// What launches refuse, and why.
#pragma once

#include <kvarts/cuda/batch.hpp>
#include <kvarts/cuda/runtime.hpp>
#include <kvarts/fragment.hpp>
#include <kvarts/kernels/shapes.cuh>
#include <kvarts/view.hpp>

#include <cstdint>

namespace kvarts::kernels {

/// Blocks in y and z that a grid may have.
inline constexpr int max_grid = 65535;

inline cudaError_t error_of(problem const& p) noexcept {
  if (!p) return cudaSuccess;
  return p.code == status::unsupported ? cudaErrorNotSupported : cudaErrorInvalidValue;
}

inline problem explain_batch(layout const& m, cuda::batch const& b) noexcept {
  if (b.sequences < 0 || b.sequences > max_grid) {
    return {status::bad_sequence, "a launch has 0 to {} sequences, not {}", max_grid, b.sequences};
  }
  if (b.max_tokens < 0) {
    return {status::bad_tokens, "max_tokens is {}, below 0", b.max_tokens};
  }
  if (b.max_tokens >> 31 != 0) {
    return {status::unsupported, "kernels count fewer than 2^31 tokens, not {}", b.max_tokens};
  }
  if (b.sequences > 0 && b.ends == nullptr) {
    return {status::bad_tokens, "the {} sequences have no ends", b.sequences};
  }
  if ((m.page_tokens > 0) != (b.block_tables != nullptr)) {
    return {status::bad_page, "a layout with pages of {} tokens needs a block table, others none",
            m.page_tokens};
  }
  if (m.page_tokens > 0 && b.table_stride * m.page_tokens < b.max_tokens) {
    return {status::bad_page, "block tables of {} entries do not hold {} tokens", b.table_stride,
            b.max_tokens};
  }
  return {};
}

inline problem explain_heads(layout const& m, int query_heads) noexcept {
  if (query_heads < 1 || query_heads % m.heads != 0) {
    return {status::bad_heads, "{} KV heads do not divide {} query heads", m.heads, query_heads};
  }
  if (m.heads > max_grid || query_heads > max_grid) {
    return {status::unsupported, "more than {} query heads: {}", max_grid, query_heads};
  }
  return {};
}

/// Kernels find tiles by shifts.
inline problem explain_tiles(layout const& m) noexcept {
  if (!is_power_of_two(m.tile_tokens)) {
    return {status::unsupported, "kernels need tiles of a power of two of tokens, not {}",
            m.tile_tokens};
  }
  if (m.page_tokens != 0 && !is_power_of_two(m.page_tokens)) {
    return {status::unsupported, "kernels need pages of a power of two of tokens, not {}",
            m.page_tokens};
  }
  return {};
}

/// Kernels multiply 32-bit strides of tiles and of pages with 32-bit indexes.
inline problem explain_strides(plane const& p) noexcept {
  for (std::int64_t const n : {p.tile_stride, p.page_stride}) {
    if (n < 0 || n >> 32 != 0) {
      return {status::unsupported, "kernels step by less than 2^32 bytes from tile to tile, not {}",
              n};
    }
  }
  return {};
}

/// All parts of a plane begin at multiples of `alignment` bytes.
inline problem explain_alignment(plane const& p, std::byte const* data, cuda::batch const& b,
                                 int alignment) noexcept {
  if (p.bytes == 0) return {};
  if (auto const fault = explain_strides(p)) return fault;
  auto const address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data));
  for (std::int64_t const n : {address + p.offset, p.tile_stride, p.head_stride, p.page_stride,
                               b.block_tables == nullptr ? b.sequence_stride : 0}) {
    if (n % alignment != 0) {
      return {status::unsupported, "kernels load {} bytes at once: {} is no multiple", alignment,
              n};
    }
  }
  return {};
}

inline problem unreadable_packing(int bits) noexcept {
  return {status::unsupported,
          "kernels read codes of {} bits in the fragment packing of their side: repack them", bits};
}

inline problem explain_head_dim(int head_dim) noexcept {
  if (has_value(head_dims{}, head_dim)) return {};
  return {status::unsupported, "no kernel is compiled for head_dim {}", head_dim};
}

/// Tensor cores multiply bfloat16 from compute capability 8 on. Without a device there is nothing
/// to refuse: the launch says so itself.
template <class Codec>
problem explain_device() noexcept {
#if defined(__CUDACC__)
  if constexpr (std::is_same_v<Codec, identity<bfloat16>>) {
    int device = 0;
    int major = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return {};
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess) {
      return {};
    }
    if (major < 8) {
      return {status::unsupported, "bfloat16 rows need compute capability {}, not {}", 8, major};
    }
  }
#endif
  return {};
}

}  // namespace kvarts::kernels
