// SPDX-License-Identifier: Apache-2.0
/// @file
/// Definitions of the launches in `kvarts/cuda/gemv.hpp`: which kernel serves a view.
#pragma once

#include <kvarts/cuda/gemv.hpp>
#include <kvarts/kernels/explain.cuh>
#include <kvarts/kernels/gemv_plain.cuh>
#include <kvarts/kernels/gemv_pv.cuh>
#include <kvarts/kernels/gemv_qk.cuh>
#include <kvarts/kernels/gemv_qk_tokens.cuh>
#include <kvarts/kernels/launch.cuh>

namespace kvarts::kernels {

/// A packing that tensor cores read.
template <class Packing>
concept fragment_packing = requires {
  Packing::side;
};

/// Tokens of the blocks that kernels read a view in.
template <class Codec, class Packing>
constexpr int block_of(layout const& m) noexcept {
  if constexpr (Codec::plain || !fragment_packing<Packing>) {
    return row_block;
  } else {
    return Packing::block_tokens({m.tile_tokens, m.head_dim, Codec::bits});
  }
}

/// Lengths of groups along channels: that of a codec with one of its own, else all that are
/// compiled.
template <class Codec>
using channel_groups_of =
    std::conditional_t<Codec::group == dynamic_group, channel_groups, values_list<Codec::group>>;

template <class Codec>
problem explain_group(int group, int block) noexcept {
  constexpr axis along = Codec::grouped_along;
  if (along == axis::channel && !has_value(channel_groups_of<Codec>{}, group)) {
    return {status::unsupported, "no kernel is compiled for groups of {} channels", group};
  }
  if (along == axis::token && group % block != 0) {
    return {status::unsupported, "kernels read blocks of {} tokens: groups of {} cut them", block,
            group};
  }
  return {};
}

/// Numbers of a plane that kernels load at once: at most the groups of a token.
template <class Codec>
int numbers_together(layout const& m) noexcept {
  if (Codec::grouped_along != axis::channel) return 1;
  std::int64_t const groups = ceil_div(m.head_dim, m.group);
  return groups % 4 == 0 ? 4 : (groups % 2 == 0 ? 2 : 1);
}

/// Largest head_dim of keys whose scales belong to channels: a warp has the plain and the scaled
/// queries in registers.
inline constexpr int most_channel_scaled = 192;

/// What scores need beyond `explain_codes`.
template <class Codec>
problem explain_keys(layout const& m) noexcept {
  if (Codec::grouped_along == axis::token && m.head_dim > most_channel_scaled) {
    return {status::unsupported,
            "no kernel is compiled for keys grouped along tokens at head_dim {}: at most {}",
            m.head_dim, most_channel_scaled};
  }
  return {};
}

/// The faults of a view's codes.
template <class Codec, class Packing>
problem explain_codes(view<Codec, std::byte const, Packing> const& codes,
                      cuda::batch const& b) noexcept {
  layout const& m = codes.map;
  if (auto const p = check<Codec, Packing>(m)) return p;
  if (auto const p = explain_tiles(m)) return p;
  if (auto const p = explain_head_dim(m.head_dim)) return p;
  if constexpr (!Codec::plain) {
    int const block = block_of<Codec, Packing>(m);
    if (!has_value(blocks{}, block)) {
      return {status::unsupported, "no kernel is compiled for tiles of {} tokens", m.tile_tokens};
    }
    if (auto const p = explain_group<Codec>(m.group, block)) return p;
    int const together = numbers_together<Codec>(m);
    int const scales = together * Codec::scale_bytes;
    if (auto const p = explain_alignment(m.scales, codes.data, b, scales)) return p;
    if (auto const p = explain_alignment(m.zeros, codes.data, b, together * 2)) return p;
  }
  return explain_alignment(m.codes, codes.data, b, 16);
}

/// Calls `f(head_dim, tiles)` with the constants of a launch.
template <class F>
void visit_shape(int head_dim, int shared, F&& f) {
  visit_value(head_dims{}, head_dim, [&](auto dim) {
    if constexpr (column_tiles_of(dim, 9) == 2) {
      if (column_tiles_of(dim, shared) == 2) return f(dim, std::integral_constant<int, 2>{});
    }
    f(dim, std::integral_constant<int, 1>{});
  });
}

/// Calls `f(format, block)` with the format of a codec and the tokens of its blocks.
template <class Codec, class Packing, class F>
void visit_format(layout const& m, F&& f) {
  visit_value(blocks{}, block_of<Codec, Packing>(m), [&](auto block) {
    if constexpr (Codec::grouped_along == axis::channel) {
      visit_value(channel_groups_of<Codec>{}, m.group,
                  [&](auto group) { f(std::type_identity<format_of<Codec, group>>{}, block); });
    } else {
      f(std::type_identity<format_of<Codec>>{}, block);
    }
  });
}

/// Kernels of a codec for one product; the arguments choose among them.
template <class Codec, class Packing>
cudaError_t launch_qk(qk_arguments const& a, layout const& m, int shared, launch_shape shape,
                      cudaStream_t stream) {
  cudaError_t code = cudaErrorNotSupported;
  visit_shape(m.head_dim, shared, [&](auto dim, auto tiles) {
    if constexpr (Codec::plain) {
      using value = typename Codec::value_type;
      code = launch(gemv_qk_plain_kernel<value, dim, tiles>, shape, stream, a);
    } else {
      visit_format<Codec, Packing>(m, [&](auto format, auto block) {
        using F = typename decltype(format)::type;
        if constexpr (F::along == axis::token && dim > most_channel_scaled) {
          code = cudaErrorNotSupported;
        } else if constexpr (F::along == axis::token) {
          code = launch(gemv_qk_tokens_kernel<F, dim, block, tiles>, shape, stream, a);
        } else {
          shape.shared_bytes = table_bytes<F>;
          code = launch(gemv_qk_kernel<F, dim, block, tiles>, shape, stream, a);
        }
      });
    }
  });
  return code;
}

template <class Codec, class Packing>
cudaError_t launch_pv(pv_arguments const& a, layout const& m, int shared, launch_shape shape,
                      cudaStream_t stream) {
  cudaError_t code = cudaErrorNotSupported;
  visit_shape(m.head_dim, shared, [&](auto dim, auto tiles) {
    shape.shared_bytes = sums_bytes<dim, tiles>;
    if constexpr (Codec::plain) {
      using value = typename Codec::value_type;
      code = launch(gemv_pv_plain_kernel<value, dim, tiles>, shape, stream, a);
    } else {
      visit_format<Codec, Packing>(m, [&](auto format, auto block) {
        using F = typename decltype(format)::type;
        shape.shared_bytes += table_bytes<F>;
        code = launch(gemv_pv_kernel<F, dim, block, tiles>, shape, stream, a);
      });
    }
  });
  return code;
}

/// Blocks of tokens for each warp of q.K^T: enough to pay for the queries' way into registers.
inline constexpr int qk_blocks_per_warp = 4;

/// Threads that add up the parts of p.V for one query head.
inline constexpr int merge_threads = 128;

}  // namespace kvarts::kernels

namespace kvarts::cuda {

template <codec_type Codec, packing Packing>
problem explain_gemv(operand side, view<Codec, std::byte const, Packing> const& codes,
                     batch const& b, int query_heads) noexcept {
  if constexpr (!Codec::plain) {
    bool readable = false;
    if constexpr (kernels::fragment_packing<Packing>) readable = Packing::side == side;
    if (!readable) return kernels::unreadable_packing(Codec::bits);
  }
  if (auto const p = kernels::explain_codes(codes, b)) return p;
  if (side == operand::keys) {
    if (auto const p = kernels::explain_keys<Codec>(codes.map)) return p;
  }
  if (auto const p = kernels::explain_device<Codec>()) return p;
  if (auto const p = kernels::explain_heads(codes.map, query_heads)) return p;
  return kernels::explain_batch(codes.map, b);
}

template <codec_type Codec, packing Packing>
cudaError_t gemv_qk(view<Codec, std::byte const, Packing> keys, batch const& b, int query_heads,
                    float const* queries, float const* bias, float* scores,
                    cudaStream_t stream) noexcept {
  using namespace kernels;
  if (auto const p = explain_gemv(operand::keys, keys, b, query_heads)) return error_of(p);
  if (b.max_tokens == 0) return cudaSuccess;
  layout const& m = keys.map;
  int const shared = query_heads / m.heads;
  int const groups = column_groups(m, query_heads);
  qk_arguments a{map_of(keys.data, m, b), {}, {queries, bias, scores, query_heads, shared}, groups};
  if constexpr (!Codec::plain) a.values = values_of<Codec>(m.head_dim);
  // A span that begins inside a block touches one block more.
  std::int64_t const most = ceil_div(b.max_tokens, block_of<Codec, Packing>(m)) + 1;
  launch_shape shape;
  shape.blocks = static_cast<unsigned>(ceil_div(most, gemv_warps * qk_blocks_per_warp));
  shape.blocks_y = static_cast<unsigned>(m.heads * groups);
  shape.blocks_z = static_cast<unsigned>(b.sequences);
  shape.threads = gemv_warps * warp_lanes;
  return launch_qk<Codec, Packing>(a, m, shared, shape, stream);
}

template <codec_type Codec, packing Packing>
cudaError_t gemv_pv(view<Codec, std::byte const, Packing> values, batch const& b, int query_heads,
                    float const* p, float* output, gemv_plan const& plan, void* scratch,
                    cudaStream_t stream) noexcept {
  using namespace kernels;
  if (auto const fault = explain_gemv(operand::values, values, b, query_heads)) {
    return error_of(fault);
  }
  if (plan.splits < 1 || (plan.splits > 1 && scratch == nullptr)) {
    return cudaErrorInvalidValue;
  }
  layout const& m = values.map;
  int const shared = query_heads / m.heads;
  int const groups = column_groups(m, query_heads);
  auto* const parts = static_cast<float*>(scratch);
  // A single part is the output itself, once empty sequences have their zeros.
  bool const split = plan.splits > 1;
  pv_arguments a{
      map_of(values.data, m, b), {}, {p, query_heads, shared}, split ? parts : output, groups};
  if constexpr (!Codec::plain) a.values = values_of<Codec>(m.head_dim);
  launch_shape shape;
  shape.blocks = static_cast<unsigned>(plan.splits);
  shape.blocks_y = static_cast<unsigned>(m.heads * groups);
  shape.blocks_z = static_cast<unsigned>(b.sequences);
  shape.threads = gemv_warps * warp_lanes;
  auto const code = launch_pv<Codec, Packing>(a, m, shared, shape, stream);
  if (code != cudaSuccess) return code;
  launch_shape merge;
  merge.blocks = static_cast<unsigned>(query_heads);
  merge.blocks_y = static_cast<unsigned>(b.sequences);
  merge.threads = merge_threads;
  return launch(gemv_pv_merge_kernel<merge_threads>, merge, stream,
                pv_merge_arguments{b, split ? parts : output, output, plan.splits, query_heads,
                                   m.head_dim, block_of<Codec, Packing>(m)});
}

}  // namespace kvarts::cuda
