// SPDX-License-Identifier: Apache-2.0
/// @file
/// A cache of host memory, copied to a device as it is.
#pragma once

#include "support/cuda/device_memory.hpp"

#include <kvarts/cache_view.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvarts::test {

/// Codes, windows, tables, lengths and transforms of a cache in device memory, at addresses that
/// stay while `copy` replaces what is there.
template <class K, class V, class KP, class VP>
class device_cache {
 public:
  using view_type = cache_view<K, V, KP, VP>;

  explicit device_cache(view_type const& host)
      : device_(host),
        keys_(bytes_of(host.keys.map)),
        values_(bytes_of(host.values.map)),
        key_windows_(host.key_windows, host.sequences),
        value_windows_(host.value_windows, host.sequences),
        tables_(static_cast<std::size_t>(host.sequences * host.table_stride)),
        lengths_(static_cast<std::size_t>(host.sequences)),
        transforms_(static_cast<std::size_t>(host.sequences)) {
    copy(host);
    copy_transforms(host);
    device_.keys.data = keys_.data();
    device_.values.data = values_.data();
    device_.key_windows = key_windows_.planes(host.key_windows);
    device_.value_windows = value_windows_.planes(host.value_windows);
    device_.block_tables = tables_.data();
    device_.lengths = lengths_.data();
    device_.transforms = transforms_.data();
    if (host.frozen != nullptr) {
      frozen_.emplace(host.frozen, lengths_.size());
      device_.frozen = frozen_->data();
    }
  }

  /// A cache of the same layouts and transforms.
  void copy(view_type const& host) {
    to_device(keys_, host.keys.data);
    to_device(values_, host.values.data);
    key_windows_.copy(host.key_windows);
    value_windows_.copy(host.value_windows);
    to_device(tables_, host.block_tables);
    to_device(lengths_, host.lengths);
  }

  view_type view() const { return device_; }

 private:
  static std::size_t bytes_of(layout const& m) { return static_cast<std::size_t>(m.size_bytes()); }

  template <class T>
  static void to_device(device_array<T> const& to, T const* from) {
    must(cudaMemcpy(to.data(), from, to.size() * sizeof(T), cudaMemcpyHostToDevice));
  }

  /// Sinks and recent rows of all sequences.
  class windows_on_device {
   public:
    windows_on_device(window_planes<std::byte const> const& host, int sequences)
        : sinks_(bytes(host.first.sinks.map, host.sink_stride, sequences)),
          recents_(bytes(host.first.recents.map, host.recent_stride, sequences)) {}

    void copy(window_planes<std::byte const> const& host) {
      to_device(sinks_, host.first.sinks.data);
      to_device(recents_, host.first.recents.data);
    }
    window_planes<std::byte const> planes(window_planes<std::byte const> p) const {
      p.first.sinks.data = sinks_.data();
      p.first.recents.data = recents_.data();
      return p;
    }

   private:
    static std::size_t bytes(layout const& m, std::int64_t stride, int sequences) {
      if (m.tokens == 0 || sequences == 0) return 0;
      return static_cast<std::size_t>((sequences - 1) * stride) + bytes_of(m);
    }

    device_array<std::byte> sinks_, recents_;
  };

  void copy_transforms(view_type const& host) {
    int const heads = host.keys.map.heads;
    int const head_dim = host.keys.map.head_dim;
    std::vector<transform_view> all;
    for (int i = 0; i < host.sequences; ++i) {
      transform_view t = host.transforms[i];
      std::int64_t const size = (heads - 1) * t.head_stride + head_dim;
      t.center = part(t.center, size);
      t.norm = part(t.norm, size);
      t.rotate.dense = part(t.rotate.dense, std::int64_t{head_dim} * head_dim);
      all.push_back(t);
    }
    to_device(transforms_, all.data());
    device_.value_rotation.dense =
        part(host.value_rotation.dense,
             std::int64_t{host.values.map.head_dim} * host.values.map.head_dim);
  }

  float const* part(float const* from, std::int64_t size) {
    if (from == nullptr) return nullptr;
    return parts_.emplace_back(from, static_cast<std::size_t>(size)).data();
  }

  view_type device_;
  device_array<std::byte> keys_, values_;
  windows_on_device key_windows_, value_windows_;
  device_array<std::int32_t> tables_;
  device_array<std::int64_t> lengths_;
  device_array<transform_view> transforms_;
  std::optional<device_array<bool>> frozen_;
  std::vector<device_array<float>> parts_;
};

}  // namespace kvarts::test
