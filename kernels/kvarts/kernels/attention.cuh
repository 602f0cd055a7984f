// SPDX-License-Identifier: Apache-2.0
/// @file
/// Definitions of the launch in `kvarts/cuda/attention.hpp`: which kernel serves a cache.
#pragma once

#include <kvarts/cuda/attention.hpp>
#include <kvarts/kernels/attention_kernel.cuh>
#include <kvarts/kernels/gemv.cuh>
#include <kvarts/kernels/launch.cuh>

#include <cmath>

namespace kvarts::kernels {

/// Most query tokens of a launch.
inline constexpr int most_query_tokens = 8;

inline problem explain_request(cuda::attention_request const& r, int sequences) noexcept {
  if (r.query_tokens < 1 || r.query_tokens > most_query_tokens) {
    return {status::unsupported, "attention takes 1 to {} query tokens, not {}", most_query_tokens,
            r.query_tokens};
  }
  if (r.tree_masks != nullptr && (r.tree_tokens < r.query_tokens || r.tree_tokens > 64)) {
    return {status::bad_tokens,
            "a tree of {} tokens for {} query tokens: it has as many, and at "
            "most 64",
            r.tree_tokens, r.query_tokens};
  }
  if (sequences > 0 && (r.queries == nullptr || r.output == nullptr)) {
    return {status::bad_plane, "{} sequences without queries or without an output", sequences};
  }
  return {};
}

/// Windows are plain rows of one type, a token a tile.
inline problem explain_window(tensor_view<std::byte const> const& rows, dtype type) noexcept {
  if (rows.map.tokens == 0) return {};
  if (rows.type != type || type == dtype::f32) {
    return {status::unsupported, "kernels read windows of one 16-bit type, not of {} bytes",
            element_size(rows.type)};
  }
  if (rows.map.tile_tokens != 1 || rows.map.page_tokens != 0) {
    return {status::unsupported, "kernels read windows without pages, a token a tile, not {}",
            rows.map.tile_tokens};
  }
  return explain_alignment(rows.map.codes, rows.data, {}, 16);
}

template <class Cache>
problem explain_windows(Cache const& c) noexcept {
  dtype const type = c.key_windows.first.recents.type;
  for (auto const* w : {&c.key_windows, &c.value_windows}) {
    if (auto const p = explain_window(w->first.sinks, type)) return p;
    if (auto const p = explain_window(w->first.recents, type)) return p;
  }
  return {};
}

/// Reads windows as well as codes: what a launch needs of one side.
template <class Codec, class Packing>
problem explain_side(operand side, view<Codec, std::byte const, Packing> const& codes,
                     cuda::batch const& b) noexcept {
  if constexpr (!Codec::plain) {
    bool readable = false;
    if constexpr (fragment_packing<Packing>) readable = Packing::side == side;
    if (!readable) return unreadable_packing(Codec::bits);
    if (auto const p = explain_alignment(codes.map.scales, codes.data, b, 16)) return p;
    if (auto const p = explain_alignment(codes.map.zeros, codes.data, b, 16)) return p;
  }
  return explain_codes(codes, b);
}

/// Tokens that kernels read at once: both sides' blocks, where their codes say.
template <class K, class KP, class V, class VP>
int common_block(layout const& keys, layout const& values) noexcept {
  int const k = K::plain ? 0 : block_of<K, KP>(keys);
  int const v = V::plain ? 0 : block_of<V, VP>(values);
  if (k == 0 && v == 0) return 32;
  if (k == 0 || v == 0) return k + v;
  return k == v ? k : 0;
}

/// The format of a codec, plain ones included; `Group` where groups lie along channels.
template <class Codec, int Group>
struct attention_format {
  using type = format_of<Codec, Group>;
};
template <class Value, int Group>
struct attention_format<identity<Value>, Group> {
  using type = plain_format<Value>;
};

/// Calls `f(std::type_identity<format>{})` for the group length of a layout.
template <class Codec, class F>
void visit_side(layout const& m, F&& f) {
  if constexpr (Codec::grouped_along == axis::channel) {
    visit_value(channel_groups{}, m.group,
                [&](auto group) { f(attention_format<Codec, group>{}); });
  } else {
    f(attention_format<Codec, 0>{});
  }
}

/// Calls `f(std::type_identity<half or bfloat16>{})` where windows of that type are compiled.
template <class... Types, class F>
void visit_window(type_list<Types...>, dtype type, F&& f) {
  ((detail::dtype_of<Types> == type ? f(std::type_identity<Types>{}) : void()), ...);
}

/// Calls `f(shape)` with the kernel's shape for a cache; no call when none is compiled.
template <class K, class V, class KP, class VP, class F>
void visit_attention(cache_view<K, V, KP, VP> const& c, int columns, F&& f) {
  visit_value(head_dims{}, c.keys.map.head_dim, [&](auto key_dim) {
    visit_value(value_dims<key_dim>{}, c.values.map.head_dim, [&](auto value_dim) {
      visit_value(blocks{}, common_block<K, KP, V, VP>(c.keys.map, c.values.map), [&](auto block) {
        visit_side<K>(c.keys.map, [&](auto key) {
          visit_side<V>(c.values.map, [&](auto value) {
            visit_window(window_types{}, c.key_windows.first.recents.type, [&](auto window) {
              using key_format = typename std::remove_cvref_t<decltype(key)>::type;
              using value_format = typename std::remove_cvref_t<decltype(value)>::type;
              using window_type = typename std::remove_cvref_t<decltype(window)>::type;
              constexpr int widest = std::max<int>(key_dim, value_dim);
              if constexpr (K::grouped_along == axis::token && key_dim > most_channel_scaled) {
                return;
              }
              // Queries that are multiplied anew for each block leave no registers for two tiles.
              constexpr bool fits = K::grouped_along != axis::token || key_dim < 128;
              if constexpr (fits && column_tiles_of(widest, 9) == 2 &&
                            has_value(compiled_column_tiles{}, 2)) {
                if (columns > 8) {
                  return f(attention_shape<key_format, value_format, window_type, key_dim,
                                           value_dim, block, 2>{});
                }
              }
              f(attention_shape<key_format, value_format, window_type, key_dim, value_dim, block,
                                1>{});
            });
          });
        });
      });
    });
  });
}

}  // namespace kvarts::kernels

namespace kvarts::cuda {

template <codec_type K, codec_type V, packing KP, packing VP>
attention_plan plan_attention(cache_view<K, V, KP, VP> const& cache, attention_request const& r,
                              int multiprocessors) noexcept {
  using namespace kernels;
  if (cache.keys.map.heads < 1 || cache.sequences < 1) return {};
  int const columns = r.query_heads / cache.keys.map.heads * r.query_tokens;
  attention_plan plan;
  visit_attention(cache, columns, [&](auto shape) {
    using S = decltype(shape);
    std::int64_t const groups = ceil_div(columns, S::columns);
    std::int64_t const items = std::int64_t{cache.sequences} * cache.keys.map.heads * groups;
    plan.blocks = attention_blocks<S> * std::max(multiprocessors, 1);
    std::int64_t const floats = std::int64_t{2} * plan.blocks * part_floats<S>;
    plan.scratch_bytes = static_cast<std::size_t>(round_up(items * 4, 16) + floats * 4);
  });
  return plan;
}

template <codec_type K, codec_type V, packing KP, packing VP>
problem explain_attention(cache_view<K, V, KP, VP> const& c, attention_request const& r) noexcept {
  using namespace kernels;
  layout const& m = c.keys.map;
  batch const b{.sequences = c.sequences,
                .ends = c.lengths,
                .block_tables = c.block_tables,
                .table_stride = c.table_stride};
  if (auto const p = explain_side(operand::keys, c.keys, b)) return p;
  if (auto const p = explain_side(operand::values, c.values, b)) return p;
  if (auto const p = explain_keys<K>(m)) return p;
  if (auto const p = explain_device<K>()) return p;
  if (auto const p = explain_device<V>()) return p;
  if (c.key_windows.first.recents.type == dtype::bf16) {
    if (auto const p = explain_device<identity<bfloat16>>()) return p;
  }
  if (auto const p = explain_heads(m, r.query_heads)) return p;
  if (c.values.map.heads != m.heads) {
    return {status::bad_heads, "{} KV heads of K, {} of V", m.heads, c.values.map.heads};
  }
  if (c.sequences < 0) return {status::bad_sequence, "{} sequences", c.sequences};
  if (c.sequences > 0 && (c.lengths == nullptr || c.transforms == nullptr)) {
    return {status::bad_tokens, "{} sequences without lengths or without transforms", c.sequences};
  }
  if (m.page_tokens == 0 && c.sequences > 1) {
    return {status::bad_page, "{} sequences need pages", c.sequences};
  }
  if (m.page_tokens != 0 && c.block_tables == nullptr) {
    return {status::bad_page, "pages of {} tokens need block tables", m.page_tokens};
  }
  if (m.page_tokens != c.values.map.page_tokens) {
    return {status::bad_page, "pages of {} tokens of K, of {} of V", m.page_tokens,
            c.values.map.page_tokens};
  }
  if (common_block<K, KP, V, VP>(m, c.values.map) == 0) {
    return {status::unsupported, "tiles of {} tokens of K and of {} of V are no common blocks",
            m.tile_tokens, c.values.map.tile_tokens};
  }
  if (auto const p = explain_windows(c)) return p;
  if (auto const p = explain_request(r, c.sequences)) return p;
  bool compiled = false;
  visit_attention(c, 1, [&](auto) { compiled = true; });
  if (!compiled) {
    return {status::unsupported, "no attention is compiled for head_dims {} and {}", m.head_dim,
            c.values.map.head_dim};
  }
  return {};
}

template <codec_type K, codec_type V, packing KP, packing VP>
cudaError_t attention(cache_view<K, V, KP, VP> const& c, attention_request const& r,
                      attention_plan const& plan, void* scratch, cudaStream_t stream) noexcept {
  using namespace kernels;
  if (auto const p = explain_attention(c, r)) return error_of(p);
  if (c.sequences == 0) return cudaSuccess;
  if (plan.blocks < 1 || scratch == nullptr) return cudaErrorInvalidValue;
  layout const& m = c.keys.map;
  batch const b{.sequences = c.sequences,
                .ends = c.lengths,
                .block_tables = m.page_tokens > 0 ? c.block_tables : nullptr,
                .table_stride = c.table_stride};
  attention_arguments a{};
  a.keys = map_of(c.keys.data, m, b);
  a.values = map_of(c.values.data, c.values.map, b);
  if constexpr (!K::plain) a.key_levels = values_of<K>(m.head_dim);
  if constexpr (!V::plain) a.value_levels = values_of<V>(c.values.map.head_dim);
  a.key_windows = c.key_windows;
  a.value_windows = c.value_windows;
  a.window = c.window;
  a.key_step = eviction_step(K::grouped_along, m.group);
  a.value_step = eviction_step(V::grouped_along, c.values.map.group);
  a.sequences = c.sequences;
  a.heads = m.heads;
  a.shared = r.query_heads / m.heads;
  a.lengths = c.lengths;
  a.frozen = c.frozen;
  a.transforms = c.transforms;
  a.value_rotation = c.value_rotation;
  a.request = r;
  if (r.scale == 0.0f) a.request.scale = 1.0f / std::sqrt(static_cast<float>(m.head_dim));
  int const columns = a.shared * r.query_tokens;
  cudaError_t code = cudaErrorNotSupported;
  visit_attention(c, columns, [&](auto shape) {
    using S = decltype(shape);
    a.column_groups = static_cast<int>(ceil_div(columns, S::columns));
    std::int64_t const items = std::int64_t{a.sequences} * a.heads * a.column_groups;
    a.counters = static_cast<std::uint32_t*>(scratch);
    a.parts = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + round_up(items * 4, 16));
    launch_shape grid;
    grid.blocks = static_cast<unsigned>(plan.blocks);
    grid.threads = attention_threads;
    grid.shared_bytes = attention_shared_bytes<S>(ring_stages<S>);
    code = launch(attention_kernel<S>, grid, stream, a);
  });
  return code;
}

}  // namespace kvarts::cuda
