// SPDX-License-Identifier: Apache-2.0
/// @file
/// Stands in for TensorRT-LLM's header of the same name: the declarations that the adapter uses,
/// with the same names and signatures, so that it is compiled and run without the engine.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

typedef struct CUstream_st* cudaStream_t;

namespace tensorrt_llm::batch_manager::kv_cache_manager_v2 {

/// The engine's indices are types of their own.
template <class Tag>
class strong_index {
 public:
  constexpr explicit strong_index(int value) noexcept : value_(value) {}
  constexpr int value() const noexcept { return value_; }
  constexpr auto operator<=>(strong_index const&) const noexcept = default;

 private:
  int value_;
};

using PoolIndex = strong_index<struct pool_tag>;
using PoolGroupIndex = strong_index<struct pool_group_tag>;
using LifeCycleId = strong_index<struct life_cycle_tag>;
using LayerGroupId = LifeCycleId;
using SlotCount = int;
using LayerId = int;
using DataRole = std::string;
using MemAddress = std::uintptr_t;

template <class Index, class T>
class TypedVec : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  T& operator[](Index i) { return this->at(static_cast<std::size_t>(i.value())); }
  T const& operator[](Index i) const { return this->at(static_cast<std::size_t>(i.value())); }
};

struct BufferId {
  LayerId layerId = 0;
  DataRole role;
};

struct CoalescedBuffer {
  std::size_t singleBufferSize = 0;
  std::vector<BufferId> bufferIds;
};

struct SlotDescVariant {
  LifeCycleId lifeCycleId{0};
  TypedVec<PoolIndex, CoalescedBuffer> coalescedBuffers;
};

struct SlotDesc {
  std::vector<SlotDescVariant> variants;
};

struct PoolDesc {
  PoolIndex poolIndex{0};
  MemAddress baseAddress = 0;
  std::size_t slotBytes = 0;
};

struct PoolGroupDesc {
  PoolGroupIndex poolGroupIndex{0};
  SlotCount numSlots = 0;
  SlotDesc slotDesc;
  TypedVec<PoolIndex, PoolDesc> pools;
};

enum class PageIndexLocation : int { kBadLocation = -1, kHost, kDevice };

struct alignas(8) PageIndexPair {
  std::int32_t dst;
  std::int32_t src;
};

class IKvCacheColdPageCodec {
 public:
  IKvCacheColdPageCodec() = default;
  virtual ~IKvCacheColdPageCodec() = default;
  IKvCacheColdPageCodec(IKvCacheColdPageCodec const&) = delete;
  IKvCacheColdPageCodec& operator=(IKvCacheColdPageCodec const&) = delete;

  virtual bool configure(PoolGroupDesc const* gpuDescs, PoolGroupIndex numGpuDescs) noexcept = 0;
  [[nodiscard]] virtual std::size_t queryColdPageBytes(LayerGroupId group) const noexcept = 0;
  [[nodiscard]] virtual LayerGroupId getBatchingLayerGroupId(LayerGroupId group) const noexcept {
    return group;
  }
  [[nodiscard]] virtual PageIndexLocation queryPageIndexLocation(
      LayerGroupId group) const noexcept = 0;
  virtual bool encode(LayerGroupId group, void* dstBasePtr, PageIndexPair const* pageIndices,
                      std::size_t numBasePages, cudaStream_t stream) noexcept = 0;
  virtual bool decode(LayerGroupId group, void const* srcBasePtr, PageIndexPair const* pageIndices,
                      std::size_t numBasePages, cudaStream_t stream) noexcept = 0;
};

}  // namespace tensorrt_llm::batch_manager::kv_cache_manager_v2
