// SPDX-License-Identifier: Apache-2.0
/// @file
/// Pages between a device and a tier by lists in device memory: launches on mapped host memory
/// alone, without staging, so that a graph can capture them and replay them with other lists.
#pragma once

#include <kvarts/tier/staged_launches.hpp>
#include <kvarts/tier/transfer.hpp>

#include <algorithm>
#include <cstdint>

namespace kvarts::tier {

namespace detail {

/// Checks all that can be known before the launches run, then calls `then()`, which enqueues.
template <device D, class Byte, class Plain, class F>
problem check_listed(D& d, page_job<Byte, Plain>& job, std::int64_t unit, page_lists const& lists,
                     F const& then) {
  if (lists.count < 0 || (lists.count > 0 && (!lists.tier || !lists.tensors))) {
    return {status::bad_tokens, "there are no lists of {} pages", lists.count};
  }
  page_moves const moves{{}, unit, 1};
  if (auto const p = check_moves<transforms_on::device>(job.tier, job.plain, job.layers, moves,
                                                        !std::is_const_v<Byte>)) {
    return p;
  }
  if (auto const p = prepare(d, job, moves)) return p;
  for (side const s : sides) {
    if (job.tier.memory(s) != nullptr && d.mapped(job.tier.memory(s)) == nullptr) {
      return {status::unsupported, "launches cannot reach the tier's memory: it is not mapped"};
    }
  }
  return then();
}

template <device D, class Byte, class Plain>
void launch_layer(D& d, enqueuer<D>& q, page_job<Byte, Plain> const& job, int layer,
                  page_lists const& lists, typename D::stream stream) {
  for (side const s : sides) {
    if (job.g.rows(s, layer).count == 0) continue;
    launch_mapped<D, Byte, Plain>(q, job, {s, layer, false}, d.mapped(job.tier.memory(s)), lists,
                                  stream);
  }
}

}  // namespace detail

/// Encodes pages of the device into the tier. Lists name units of `unit_tokens` tokens; launches
/// leave out pages that are outside, and no page of the tier may occur twice. `order.encoded` and
/// `order.stored` mark the same. On a problem other than `device_failed` nothing was enqueued.
template <device D>
problem store_listed(D& d, tier_view const& tier, std::span<source_layer const> plain,
                     layer_range layers, std::int64_t unit_tokens, page_lists const& lists,
                     typename D::stream stream, store_order<D> const& order) {
  detail::page_job<std::byte, std::byte const> job{{}, tier, plain, layers};
  return detail::check_listed(d, job, unit_tokens, lists, [&] {
    enqueuer<D> q(d);
    q.wait(stream, order.written);
    q.wait(stream, order.host_free);
    for (int l = layers.begin; l < layers.end; ++l) {
      detail::launch_layer(d, q, job, l, lists, stream);
    }
    q.record(order.encoded, stream);
    q.record(order.stored, stream);
    return q.result();
  });
}

/// Decodes pages of the tier to the device, layer by layer; as `store_listed` otherwise.
template <device D>
problem load_listed(D& d, const_tier_view const& tier, std::span<target_layer const> plain,
                    layer_range layers, std::int64_t unit_tokens, page_lists const& lists,
                    typename D::stream stream, load_order<D> const& order) {
  detail::page_job<std::byte const, std::byte> job{{}, tier, plain, layers};
  return detail::check_listed(d, job, unit_tokens, lists, [&] {
    if (auto const p = check_record(order, layers)) return p;
    enqueuer<D> q(d);
    q.wait(stream, order.stored);
    q.wait(stream, order.slots_free);
    for (int l = layers.begin; l < layers.end; ++l) {
      detail::launch_layer(d, q, job, l, lists, stream);
      record_layer(q, order, l, stream);
    }
    q.record(order.loaded, stream);
    return q.result();
  });
}

}  // namespace kvarts::tier
