// SPDX-License-Identifier: Apache-2.0
/// @file
/// The events between moves of pages and all others that use the pages: who waits for what.
///
/// 1. A store waits for the last write of the device's pages (`written`).
/// 2. These are written again only behind `encoded`.
/// 3. Records are read by anyone only behind `stored`.
/// 4. A store waits for restores that still read its host pages (`host_free`, a load's `loaded`).
/// 5. A load waits for the last user of the device's pages (`slots_free`).
/// 6. A layer's event is recorded behind all launches of the layer, and readers wait for it.
/// 7. Events of layers are recorded once a generation (`layer_events`).
/// 8. Host arrays of indices are consumed when a call returns; lists in device memory stay as they
///    are until `encoded` (a store) or `loaded`.
/// 9. Whether what was decoded is encoded to the same bytes again is said by `reencodes_alike`.
/// 10. Calls only enqueue. `store_listed` and `load_listed` may be captured in a graph; moves
///     through staging are refused while a stream captures.
#pragma once

#include <kvarts/tier/layer_events.hpp>
#include <kvarts/tier/layers.hpp>

#include <cstdint>
#include <limits>
#include <optional>

namespace kvarts::tier {

/// `copy_from_bytes`: pieces of at least so many bytes, in the mean of a span, go by copies; others
/// by launches on mapped memory. Copies of less than 28 KiB a piece reach a fraction of a link's
/// speed. 0 is always copies; `always_mapped` suits links that are coherent.
struct transfer_options {
  static constexpr std::int64_t always_mapped = std::numeric_limits<std::int64_t>::max();

  std::int64_t copy_from_bytes = 28 * 1024;
};

/// What a store waits for, and what it marks; each may be left out.
template <device D>
struct store_order {
  using event = std::optional<typename D::event>;

  event written{};    ///< waits: the last write of the device's pages
  event host_free{};  ///< waits: the last restore from the host's pages
  event encoded{};    ///< marks: the device's pages may be written again
  event stored{};     ///< marks: records may be read, and restored from
};

/// What a load waits for, and what it marks; each may be left out.
template <device D>
struct load_order {
  using event = std::optional<typename D::event>;

  event stored{};      ///< waits: the records are written
  event slots_free{};  ///< waits: the last user of the device's pages
  event loaded{};      ///< marks: the host's pages may be overwritten, and all layers are here
  layer_events<D>* layers = nullptr;  ///< marks each layer as it is complete ...
  std::int64_t generation = 0;        ///< ... in this generation
};

/// Layer events that a load is to mark must be open, and not recorded yet.
template <device D>
problem check_record(load_order<D> const& order, layer_range layers) {
  if (order.layers == nullptr) return {};
  for (int l = layers.begin; l < layers.end; ++l) {
    if (auto const p = order.layers->check_record(order.generation, l)) return p;
  }
  return {};
}

/// Marks a layer of a load complete.
template <device D>
void record_layer(enqueuer<D>& q, load_order<D> const& order, int layer, typename D::stream s) {
  if (order.layers == nullptr) return;
  q([&](D&) { return order.layers->record(order.generation, layer, s); });
}

/// Pages as lists in device memory: page `tier[i]` of the tier, page `tensors[i]` of the tensors.
/// Lists must stay as they are until the work that reads them is done.
struct page_lists {
  std::int32_t const* tier = nullptr;
  std::int32_t const* tensors = nullptr;
  std::int64_t count = 0;
};

/// The streams of a move: launches go to one, copies to the other, so that they overlap. They may
/// be the same.
template <device D>
struct move_streams {
  typename D::stream kernels{};
  typename D::stream copies{};
};

}  // namespace kvarts::tier
