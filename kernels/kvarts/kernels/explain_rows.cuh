// SPDX-License-Identifier: Apache-2.0
/// @file
/// What launches that encode and decode refuse, and why.
#pragma once

#include <kvarts/cuda/rows.hpp>
#include <kvarts/kernels/explain.cuh>
#include <kvarts/kernels/unit_memory.cuh>
#include <kvarts/kernels/warp_row.cuh>
#include <kvarts/tensor.hpp>

#include <cstdint>

namespace kvarts::kernels {

/// Coded memory: any layout of up to 256 channels.
template <class Codec, class Packing>
problem explain_coded(layout const& m, std::byte const* data) noexcept {
  if (auto const p = check<Codec, Packing>(m)) return p;
  if (m.head_dim > max_row_dim) {
    return {status::unsupported, "kernels serve a head_dim of up to {}, not {}", max_row_dim,
            m.head_dim};
  }
  if (m.group > max_row_dim) {
    return {status::unsupported, "kernels serve groups of up to {}, not {}", max_row_dim, m.group};
  }
  if constexpr (Codec::plain) return explain_alignment(m.codes, data, {}, 2);
  return {};
}

/// Plain rows for a coded layout.
inline problem explain_plain(layout const& m, dtype type, std::byte const* data,
                             layout const& coded) noexcept {
  if (auto const p = check_tensor(m, type)) return p;
  if (m.head_dim != coded.head_dim) {
    return {status::bad_head_dim, "plain rows have head_dim {} where codes have {}", m.head_dim,
            coded.head_dim};
  }
  if (m.heads != coded.heads) {
    return {status::bad_heads, "plain rows have {} KV heads where codes have {}", m.heads,
            coded.heads};
  }
  return explain_alignment(m.codes, data, {}, element_size(type));
}

/// Coded memory of two sides that hold the same tokens.
inline problem explain_alike(layout const& a, layout const& b) noexcept {
  if (a.head_dim != b.head_dim) {
    return {status::bad_head_dim, "one side has head_dim {}, the other {}", a.head_dim, b.head_dim};
  }
  if (a.heads != b.heads) {
    return {status::bad_heads, "one side has {} KV heads, the other {}", a.heads, b.heads};
  }
  if (a.group != b.group) {
    return {status::bad_group, "one side has groups of {}, the other of {}", a.group, b.group};
  }
  return {};
}

inline problem explain_rows(layout const& m, cuda::rows const& r) noexcept {
  if (r.sequences < 0) {
    return {status::bad_sequence, "a launch has no {} sequences", r.sequences};
  }
  if (r.max_tokens < 0) return {status::bad_tokens, "max_tokens is {}, below 0", r.max_tokens};
  if (r.begin < 0) return {status::bad_tokens, "the first token is {}, below 0", r.begin};
  if ((m.page_tokens > 0) != (r.block_tables != nullptr)) {
    return {status::bad_page, "a layout with pages of {} tokens needs a block table, others none",
            m.page_tokens};
  }
  return {};
}

inline problem explain_transform(transform_view const& t) noexcept {
  if (t.rotate.rounds < 0 || t.rotate.rounds > max_rotation_rounds) {
    return {status::bad_transform, "a rotation has 0 to {} rounds, not {}", max_rotation_rounds,
            t.rotate.rounds};
  }
  return {};
}

inline problem explain_memory(layout const& m, warp_memory const& w) noexcept {
  if (w.warps() > 0) return {};
  return {status::unsupported, "{} tokens of head_dim {} that share bytes or groups are too many",
          w.unit, m.head_dim};
}

/// Blocks for so many items, one for each warp. Where there are more than a few for every place
/// that a device has, warps take several, and make a transform ready once for all.
inline launch_shape shape_for_warps(std::int64_t items, warp_memory const& w) noexcept {
  constexpr std::int64_t most_blocks = 2048;
  int const warps = w.warps();
  launch_shape s;
  s.blocks = static_cast<unsigned>(std::min(ceil_div(items, warps), most_blocks));
  s.threads = static_cast<unsigned>(warps * warp_lanes);
  s.shared_bytes = static_cast<std::size_t>(warps) * static_cast<std::size_t>(w.bytes);
  return s;
}

}  // namespace kvarts::kernels
