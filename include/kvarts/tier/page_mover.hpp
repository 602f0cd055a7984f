// SPDX-License-Identifier: Apache-2.0
/// @file
/// Pages between a device and a tier in host memory, enqueued on streams in the order that the
/// tier's contract demands.
///
/// Long pieces go by copies through a ring of staging, short ones by launches that reach the host's
/// memory themselves. Calls only enqueue: the host never waits, and host arrays of indices are
/// consumed when a call returns.
#pragma once

#include <kvarts/tier/staged_launches.hpp>
#include <kvarts/tier/transfer.hpp>

#include <algorithm>
#include <cstdint>

namespace kvarts::tier {

/// Moves pages of one direction through a ring. Calls come from one thread at a time; device, ring
/// and mover outlive the work. Tensors, transforms and staging are device memory, the tier is
/// pinned host memory.
template <device D>
class page_mover {
 public:
  page_mover(D& d, staging_ring<D>& ring, transfer_options const& options = {})
      : device_(&d), ring_(&ring), options_(options), ready_(d.make_event(joined_)) {}
  page_mover(page_mover const&) = delete;
  page_mover& operator=(page_mover const&) = delete;
  ~page_mover() {
    if (ready_) device_->destroy_event(joined_);
  }

  /// Whether the device gave what a mover needs.
  bool ready() const noexcept { return ready_ && ring_->slices() > 0; }

  /// Encodes pages of the device into the tier. On a problem other than `device_failed` nothing was
  /// enqueued.
  problem store(tier_view const& tier, std::span<source_layer const> plain, layer_range layers,
                page_moves const& moves, move_streams<D> const& streams,
                store_order<D> const& order) {
    detail::page_job<std::byte, std::byte const> job{{}, tier, plain, layers};
    if (auto const p = prepare(job, moves, streams, true)) return p;
    enqueuer<D> q(*device_);
    q.wait(streams.kernels, order.written);
    q.wait(streams.kernels, order.host_free);
    for_each_span(job, [&](staged_span const& span) { move(q, job, moves, span, streams); });
    q.record(order.encoded, streams.kernels);
    q.record(joined_, streams.kernels);  // some spans may have gone without copies
    q.wait(streams.copies, joined_);
    q.record(order.stored, streams.copies);
    return q.result();
  }

  /// Decodes pages of the tier to the device, layer by layer where the host's layout keeps layers
  /// apart; as `store` otherwise. Layer events must be open in `order.generation`.
  problem load(const_tier_view const& tier, std::span<target_layer const> plain, layer_range layers,
               page_moves const& moves, move_streams<D> const& streams,
               load_order<D> const& order) {
    detail::page_job<std::byte const, std::byte> job{{}, tier, plain, layers};
    if (auto const p = prepare(job, moves, streams, false)) return p;
    if (auto const p = check_record(order, layers)) return p;
    enqueuer<D> q(*device_);
    q.wait(streams.copies, order.stored);
    q.wait(streams.kernels, order.stored);
    q.wait(streams.kernels, order.slots_free);
    int done = layers.begin;
    for_each_span(job, [&](staged_span const& span) {
      if (!span.whole_pages) mark_layers(q, order, done, span.layer, streams.kernels);
      move(q, job, moves, span, streams);
    });
    mark_layers(q, order, done, layers.end, streams.kernels);
    q.record(order.loaded, streams.kernels);
    return q.result();
  }

 private:
  template <class Byte, class Plain>
  problem prepare(detail::page_job<Byte, Plain>& job, page_moves const& moves,
                  move_streams<D> const& streams, bool to_coded) {
    if (!ready()) return {status::device_failed, "the device gave no staging or no events"};
    if (device_->capturing(streams.kernels) || device_->capturing(streams.copies)) {
      return {status::unsupported,
              "staging waits for events from before a capture: while a stream captures, pages move "
              "by lists in device memory (store_listed, load_listed)"};
    }
    if (auto const p =
            check_moves<transforms_on::device>(job.tier, job.plain, job.layers, moves, to_coded)) {
      return p;
    }
    if (auto const p = detail::prepare(*device_, job, moves)) return p;
    problem found{};
    for_each_span(job, [&](staged_span const& span) {
      std::int64_t const bytes = bytes_per_page(job.g, span);
      if (room_of(bytes) > 0 || found) return;
      found = {status::unsupported, "a slice of {} bytes does not hold one page of {} bytes",
               ring_->slice_bytes(), bytes};
    });
    return found;
  }

  /// Records the events of layers `done..end-1`.
  void mark_layers(enqueuer<D>& q, load_order<D> const& order, int& done, int end,
                   typename D::stream stream) {
    for (; done < end; ++done) record_layer(q, order, done, stream);
  }

  /// Pages of so many bytes that a slice holds.
  std::int64_t room_of(std::int64_t page_bytes) const noexcept {
    return detail::slice_parts::room_of(ring_->slice_bytes(), page_bytes);
  }

  /// Whole pages where all layers move and lie together, else layer after layer.
  template <class Job, class F>
  void for_each_span(Job const& job, F const& f) const {
    geometry const& g = job.g;
    bool whole = g.placement != host_layout::layer_first && job.layers.begin == 0 &&
                 job.layers.end == g.layers;
    for (side const s : detail::sides) whole = whole && room_of(bytes_per_page(g, s)) > 0;
    int const end = whole ? std::min(1, job.layers.end) : job.layers.end;
    for (int layer = job.layers.begin; layer < end; ++layer) {
      for (side const s : detail::sides) {
        staged_span const span{s, layer, whole};
        if (bytes_per_page(g, span) > 0) f(span);
      }
    }
  }

  /// All pairs of a span.
  template <class Byte, class Plain>
  void move(enqueuer<D>& q, detail::page_job<Byte, Plain> const& job, page_moves const& moves,
            staged_span const& span, move_streams<D> const& streams) {
    constexpr bool loads = std::is_const_v<Byte>;
    auto const& pairs = moves.pairs;
    auto const host = [&](std::int64_t i) { return loads ? pairs.src(i) : pairs.dst(i); };
    auto const tensor = [&](std::int64_t i) { return loads ? pairs.dst(i) : pairs.src(i); };
    Byte* memory = nullptr;
    if (mean_piece_bytes(job.g, span, pairs.count(), host) < options_.copy_from_bytes) {
      memory = device_->mapped(job.tier.memory(span.side));
    }
    std::int64_t const room = room_of(memory != nullptr ? 0 : bytes_per_page(job.g, span));
    for (std::int64_t i = 0; i < pairs.count(); i += room) {
      std::int64_t const count = std::min(room, pairs.count() - i);
      auto const host_page = [&](std::int64_t k) { return host(i + k); };
      auto const tensor_page = [&](std::int64_t k) { return tensor(i + k); };
      if (memory != nullptr) {
        move_mapped(q, job, span, memory, count, host_page, tensor_page, streams.kernels);
      } else {
        move_staged(q, job, span, count, host_page, tensor_page, streams);
      }
    }
  }

  /// One chunk through a slice: launches fill it and copies empty it, or the reverse.
  template <class Byte, class Plain, class Page, class TensorPage>
  void move_staged(enqueuer<D>& q, detail::page_job<Byte, Plain> const& job,
                   staged_span const& span, std::int64_t count, Page const& host,
                   TensorPage const& tensor, move_streams<D> const& streams) {
    constexpr bool loads = std::is_const_v<Byte>;
    auto const first = loads ? streams.copies : streams.kernels;
    auto const second = loads ? streams.kernels : streams.copies;
    auto const& slice = ring_->acquire(q, first);
    detail::slice_parts const parts(slice.data, count);
    detail::upload_list(q, first, parts.list(0), count, tensor);
    if constexpr (loads) detail::copy_pieces(q, job, span, parts, host, first);
    if constexpr (!loads) detail::launch_staged(q, job, span, parts, first);
    q.record(slice.filled, first);
    q.wait(second, slice.filled);
    if constexpr (loads) detail::launch_staged(q, job, span, parts, second);
    if constexpr (!loads) detail::copy_pieces(q, job, span, parts, host, second);
    q.record(slice.last_use, second);
  }

  /// One chunk without staging; its slice has lists only.
  template <class Byte, class Plain, class Page, class TensorPage>
  void move_mapped(enqueuer<D>& q, detail::page_job<Byte, Plain> const& job,
                   staged_span const& span, Byte* memory, std::int64_t count, Page const& host,
                   TensorPage const& tensor, typename D::stream stream) {
    auto const& slice = ring_->acquire(q, stream);
    detail::slice_parts const parts(slice.data, count);
    detail::upload_list(q, stream, parts.list(0), count, tensor);
    detail::upload_list(q, stream, parts.list(1), count, host);
    detail::launch_mapped(q, job, span, memory, {parts.list(1), parts.list(0), count}, stream);
    q.record(slice.last_use, stream);
  }

  D* device_;
  staging_ring<D>* ring_;
  transfer_options options_;
  typename D::event joined_{};
  bool ready_;
};

}  // namespace kvarts::tier
