// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the tier asks of a device: streams, events, copies and launches. CUDA is one
/// (`kvarts/tier/cuda_device.hpp`), a model that reorders work another, in tests.
#pragma once

#include <kvarts/codec.hpp>
#include <kvarts/status.hpp>
#include <kvarts/transform.hpp>
#include <kvarts/view.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kvarts::tier {

/// One launch that codes pages: page `coded_pages[i]` of coded memory (page i where that is null)
/// and page `plain_pages[i]` of a plain tensor, for i < `pages`. Both layouts have pages of as many
/// tokens. All pointers but those of host memory that is mapped are to device memory, which is read
/// when the launch runs.
template <class Coded, class Plain>
struct page_launch {
  codec_info codec{};
  Coded* coded = nullptr;
  layout map{};
  std::int32_t const* coded_pages = nullptr;
  tensor_view<Plain> plain{};
  std::int32_t const* plain_pages = nullptr;
  std::int64_t pages = 0;
  transform_view transform{};
};

using encode_launch = page_launch<std::byte, std::byte const>;
using decode_launch = page_launch<std::byte const, std::byte>;

/// A device. Streams run what is enqueued on them in order; an event marks what was enqueued before
/// its last `record`; `wait` delays a stream until the event as it was recorded when `wait` was
/// called, or not at all if it never was. Nothing here waits on the host. Everything but `explain`,
/// `mapped` and `capturing` answers false when the device refuses.
template <class D>
concept device = std::copyable<typename D::stream> && std::copyable<typename D::event> &&
    requires(D& d, typename D::stream s, typename D::event e, std::byte* to, std::byte const* from,
             std::int64_t bytes, encode_launch const& out, decode_launch const& in) {
  { d.make_event(e) } -> std::same_as<bool>;
  d.destroy_event(e);
  { d.record(e, s) } -> std::same_as<bool>;
  { d.wait(s, e) } -> std::same_as<bool>;
  /// Between device memory and pinned host memory.
  { d.copy(to, from, bytes, s) } -> std::same_as<bool>;
  /// To device memory, from host memory that may change once the call returns.
  { d.upload(to, from, bytes, s) } -> std::same_as<bool>;
  { d.encode(out, s) } -> std::same_as<bool>;
  { d.decode(in, s) } -> std::same_as<bool>;
  /// Why a launch is not served, its page counts and page lists apart.
  { d.explain(out) } -> std::same_as<problem>;
  { d.explain(in) } -> std::same_as<problem>;
  /// The device's address of host memory; null where launches cannot reach it.
  { d.mapped(from) } -> std::same_as<std::byte*>;
  /// Whether what is enqueued on a stream is captured in a graph.
  { d.capturing(s) } -> std::same_as<bool>;
};

/// Enqueues one thing after another; after the first that the device refuses, nothing.
template <device D>
class enqueuer {
 public:
  explicit enqueuer(D& d) noexcept : device_(&d) {}

  template <class F>
  void operator()(F const& enqueue) {
    if (ok_) ok_ = enqueue(*device_);
  }
  /// Nothing is enqueued for no event.
  void wait(typename D::stream s, std::optional<typename D::event> const& e) {
    if (e) (*this)([&](D& d) { return d.wait(s, *e); });
  }
  void record(std::optional<typename D::event> const& e, typename D::stream s) {
    if (e) (*this)([&](D& d) { return d.record(*e, s); });
  }

  problem result() const noexcept {
    if (ok_) return {};
    return {status::device_failed, "the device refused a copy, a launch or an event"};
  }

 private:
  D* device_;
  bool ok_ = true;
};

}  // namespace kvarts::tier
