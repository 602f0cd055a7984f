// SPDX-License-Identifier: Apache-2.0
/// @file
/// The launches and copies of one chunk of a move, out of the tier or into it.
#pragma once

#include <kvarts/tier/staged_chunks.hpp>
#include <kvarts/tier/transfer.hpp>

#include <cstdint>

namespace kvarts::tier::detail {

template <device D>
bool enqueue(D& d, encode_launch const& l, typename D::stream stream) {
  return d.encode(l, stream);
}
template <device D>
bool enqueue(D& d, decode_launch const& l, typename D::stream stream) {
  return d.decode(l, stream);
}

/// Calls `f(layer, segment)` for what a span holds.
template <class Job, class F>
void for_each_segment_of(Job const& job, staged_span const& span, F const& f) {
  int const end = span.whole_pages ? job.layers.end : span.layer + 1;
  for (int layer = span.layer; layer < end; ++layer) {
    for (int part = 0; part < job.g.rows(span.side, layer).count; ++part) f(layer, part);
  }
}

/// Launches between a slice and the tensors, whose pages are in the slice's first list.
template <device D, class Byte, class Plain>
void launch_staged(enqueuer<D>& q, page_job<Byte, Plain> const& job, staged_span const& span,
                   slice_parts const& slice, typename D::stream stream) {
  for_each_segment_of(job, span, [&](int layer, int part) {
    layout const map = plan_staging(job.g, span, layer, slice.room, part);
    auto l = job.launch(span.side, layer, part, map);
    l.coded = slice.records;
    l.plain_pages = slice.list(0);
    l.pages = slice.room;
    q([&](D& d) { return enqueue(d, l, stream); });
  });
}

/// Launches between the tensors and the host's memory, as the device sees it.
template <device D, class Byte, class Plain>
void launch_mapped(enqueuer<D>& q, page_job<Byte, Plain> const& job, staged_span const& span,
                   Byte* memory, page_lists const& lists, typename D::stream stream) {
  for_each_segment_of(job, span, [&](int layer, int part) {
    auto l =
        job.launch(span.side, layer, part, plan_layout(job.g, span.side, layer, job.pages(), part));
    l.coded = memory;
    l.coded_pages = lists.tier;
    l.plain_pages = lists.tensors;
    l.pages = lists.count;
    q([&](D& d) { return enqueue(d, l, stream); });
  });
}

/// Copies pages `host(0)..host(slice.room - 1)` of a span: out of the tier to a slice, or from
/// there into the tier.
template <device D, class Byte, class Plain, class Page>
void copy_pieces(enqueuer<D>& q, page_job<Byte, Plain> const& job, staged_span const& span,
                 slice_parts const& slice, Page const& host, typename D::stream stream) {
  Byte* const memory = job.tier.memory(span.side);
  for_each_piece(job.g, span, job.pages(), slice.room, host, [&](piece const& p) {
    q([&](D& d) {
      if constexpr (std::is_const_v<Byte>) {
        return d.copy(slice.records + p.staged, memory + p.host, p.bytes, stream);
      } else {
        return d.copy(memory + p.host, slice.records + p.staged, p.bytes, stream);
      }
    });
  });
}

}  // namespace kvarts::tier::detail
