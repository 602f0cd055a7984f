// SPDX-License-Identifier: Apache-2.0
/// @file
/// kvarts as TensorRT-LLM's cold page codec: evicted pages become one blob each, which holds the
/// records of all layers of a layer group, K and V.
///
/// A blob is a page of a tier that has K and V as layers of their own, one after another, so the
/// tier's moves serve it as any other. A mover does the work: `host_mover` at once, for pools that
/// this processor reaches, `device_mover` on the engine's stream.
#pragma once

#include <kvarts/tier/layers.hpp>
#include <kvarts/tier/page_mover.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <tensorrt_llm/batch_manager/kv_cache_manager_v2/coldPageCodec.h>
#include <utility>
#include <vector>

namespace kvarts::adapters {

namespace trt = tensorrt_llm::batch_manager::kv_cache_manager_v2;

/// What the engine's descriptors leave open. Spans must outlive the codec.
struct cold_page_options {
  int heads = 0;
  int head_dim = 0;
  int page_tokens = 0;
  dtype hot = dtype::bf16;
  order in_page = order::head_major;  ///< of the hot pages
  tier::segment keys{}, values{};
  int alignment = 16;
  std::span<tier::page_coder const> coders{};
  std::span<transform_view const> key_transforms{};  ///< by layer id; none for plain codes
  std::span<transform_view const> value_transforms{};
};

/// Moves pages before the call returns.
struct host_mover {
  static bool store(tier::tier_view const& cold, std::span<tier::source_layer const> hot,
                    tier::page_moves const& moves, cudaStream_t) noexcept {
    return encode_layers(cold, hot, {0, cold.geometry->layers}, moves).code == status::ok;
  }
  static bool load(tier::const_tier_view const& cold, std::span<tier::target_layer const> hot,
                   tier::page_moves const& moves, cudaStream_t) noexcept {
    return decode_layers(cold, hot, {0, cold.geometry->layers}, moves) == status::ok;
  }
};

/// Enqueues pages on the engine's stream, which orders them with the engine's own work. Cold pages
/// are pinned memory; one mover a direction, since each has a ring of its own.
template <tier::device D>
struct device_mover {
  tier::page_mover<D>* out = nullptr;
  tier::page_mover<D>* in = nullptr;

  bool store(tier::tier_view const& cold, std::span<tier::source_layer const> hot,
             tier::page_moves const& moves, typename D::stream s) const {
    return !out->store(cold, hot, {0, cold.geometry->layers}, moves, {s, s}, {});
  }
  bool load(tier::const_tier_view const& cold, std::span<tier::target_layer const> hot,
            tier::page_moves const& moves, typename D::stream s) const {
    return !in->load(cold, hot, {0, cold.geometry->layers}, moves, {s, s}, {});
  }
};

template <class Mover = host_mover>
class cold_page_codec final : public trt::IKvCacheColdPageCodec {
 public:
  explicit cold_page_codec(cold_page_options const& options, Mover mover = {})
      : options_(options), mover_(std::move(mover)) {}

  /// Takes all descriptors or none: false for buffers that are not K or V of the options' size.
  bool configure(trt::PoolGroupDesc const* groups, trt::PoolGroupIndex count) noexcept override {
    if (count.value() < 0) return false;
    try {
      std::map<trt::LayerGroupId, layer_group> found;
      for (trt::PoolGroupDesc const& group : std::span(groups, std::size_t(count.value()))) {
        for (auto const& variant : group.slotDesc.variants) {
          found.emplace(variant.lifeCycleId, group_of(group, variant));
        }
      }
      groups_ = std::move(found);
      return true;
    } catch (std::exception const&) {
      return false;
    }
  }

  std::size_t queryColdPageBytes(trt::LayerGroupId id) const noexcept override {
    auto const* const g = find(id);
    return g != nullptr ? static_cast<std::size_t>(tier::bytes_per_page(g->shape)) : 0;
  }

  trt::PageIndexLocation queryPageIndexLocation(trt::LayerGroupId id) const noexcept override {
    return find(id) != nullptr ? trt::PageIndexLocation::kHost
                               : trt::PageIndexLocation::kBadLocation;
  }

  bool encode(trt::LayerGroupId id, void* cold, trt::PageIndexPair const* pairs, std::size_t count,
              cudaStream_t stream) noexcept override {
    auto const* const g = find(id);
    if (g == nullptr) return false;
    auto* const blobs = static_cast<std::byte*>(cold);
    return mover_.store({&g->shape, room(), blobs, nullptr, options_.coders}, g->source,
                        moves_of(pairs, count), stream);
  }

  bool decode(trt::LayerGroupId id, void const* cold, trt::PageIndexPair const* pairs,
              std::size_t count, cudaStream_t stream) noexcept override {
    auto const* const g = find(id);
    if (g == nullptr) return false;
    auto const* const blobs = static_cast<std::byte const*>(cold);
    return mover_.load({&g->shape, room(), blobs, nullptr, options_.coders}, g->target,
                       moves_of(pairs, count), stream);
  }

 private:
  /// The layers of a group as those of a tier, and the hot tensors of each.
  struct layer_group {
    tier::geometry shape;
    std::vector<tier::source_layer> source;
    std::vector<tier::target_layer> target;
  };

  layer_group const* find(trt::LayerGroupId id) const noexcept {
    auto const at = groups_.find(id);
    return at != groups_.end() ? &at->second : nullptr;
  }

  /// The engine does not say how many cold pages there are; it vouches for its indices.
  std::int64_t room() const noexcept { return (std::int64_t{1} << 31) / options_.page_tokens; }

  tier::page_moves moves_of(trt::PageIndexPair const* pairs, std::size_t count) const noexcept {
    static_assert(sizeof(trt::PageIndexPair) == sizeof(tier::index_pair<std::int32_t>));
    auto const* const same = reinterpret_cast<tier::index_pair<std::int32_t> const*>(pairs);
    return {tier::index_pairs(same, static_cast<std::int64_t>(count)), options_.page_tokens, 1};
  }

  layer_group group_of(trt::PoolGroupDesc const& desc, trt::SlotDescVariant const& variant) const {
    layer_group g;
    g.shape.heads = options_.heads;
    g.shape.page_tokens = options_.page_tokens;
    g.shape.record = tier::record_kind::page;
    g.shape.placement = tier::host_layout::page_first_direct;
    g.shape.alignment = options_.alignment;
    g.shape.kinds[0].keys = options_.keys;
    g.shape.kinds[1].keys = options_.values;
    for (trt::PoolDesc const& pool : desc.pools) {
      auto const& buffers = variant.coalescedBuffers[pool.poolIndex];
      std::size_t offset = 0;
      for (trt::BufferId const& buffer : buffers.bufferIds) {
        add_buffer(g, desc, pool, buffer, buffers.singleBufferSize, offset);
        offset += buffers.singleBufferSize;
      }
    }
    throw_if(tier::check(g.shape, room()));
    return g;
  }

  void add_buffer(layer_group& g, trt::PoolGroupDesc const& desc, trt::PoolDesc const& pool,
                  trt::BufferId const& buffer, std::size_t bytes, std::size_t offset) const {
    bool const keys = buffer.role == "key";
    auto const size = static_cast<std::size_t>(element_size(options_.hot));
    layout const m = hot_layout(desc.numSlots, static_cast<std::int64_t>(pool.slotBytes / size));
    bool const fits = offset + bytes <= pool.slotBytes &&
                      bytes == static_cast<std::size_t>(m.codes.bytes) * std::size_t(m.heads) *
                                   std::size_t(m.page_tokens);
    auto const& all = keys ? options_.key_transforms : options_.value_transforms;
    auto const layer = static_cast<std::size_t>(buffer.layerId);
    if (!fits || pool.slotBytes % size != 0 || (!keys && buffer.role != "value") ||
        (!all.empty() && layer >= all.size()) || g.shape.layers == tier::geometry::max_layers) {
      throw std::invalid_argument("a buffer is not K or V of the options' size");
    }
    auto* const data = reinterpret_cast<std::byte*>(pool.baseAddress) + offset;
    transform_view const t = all.empty() ? transform_view{} : all[layer];
    g.source.emplace_back().keys[0] = {{data, options_.hot, m, {}}, t};
    g.target.emplace_back().keys[0] = {{data, options_.hot, m, {}}, t};
    g.shape.kind_of_layer[static_cast<std::size_t>(g.shape.layers++)] = keys ? 0 : 1;
  }

  /// Pages of `[heads, tokens, head_dim]` (or tokens first), `slot` elements apart.
  layout hot_layout(std::int64_t slots, std::int64_t slot) const {
    auto strides =
        contiguous(options_.in_page, options_.heads, options_.head_dim, options_.page_tokens);
    strides.page = slot;
    return make_tensor_layout(options_.hot, options_.heads, options_.head_dim,
                              slots * options_.page_tokens, strides, options_.page_tokens);
  }

  cold_page_options options_;
  Mover mover_;
  std::map<trt::LayerGroupId, layer_group> groups_;
};

}  // namespace kvarts::adapters
