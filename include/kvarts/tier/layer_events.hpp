// SPDX-License-Identifier: Apache-2.0
/// @file
/// Events that say when a layer of a restore is complete, so that a model computes on the first
/// layers while the others still come.
#pragma once

#include <kvarts/tier/device.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvarts::tier {

/// One event a layer for each of a few restores under way. Each restore is a generation: its events
/// are recorded once, and again only by a later generation, after this one was closed. Waiting for
/// a layer that is not enqueued yet, or for a generation that is past, is refused: an event by
/// itself would let both pass. Calls come from one thread at a time.
template <device D>
class layer_events {
 public:
  /// `ready()` says whether the device gave all events.
  layer_events(D& d, int layers, int generations) : device_(&d), layers_(layers) {
    sets_.resize(static_cast<std::size_t>(generations));
    events_.reserve(sets_.size() * static_cast<std::size_t>(layers));
    while (events_.size() < events_.capacity()) {
      typename D::event e{};
      if (!d.make_event(e)) return;
      events_.push_back(e);
    }
    for (set& s : sets_) s.recorded.assign(static_cast<std::size_t>(layers), false);
    ready_ = generations > 0 && layers > 0;
  }
  layer_events(layer_events const&) = delete;
  layer_events& operator=(layer_events const&) = delete;
  ~layer_events() {
    for (auto const& e : events_) device_->destroy_event(e);
  }

  bool ready() const noexcept { return ready_; }
  int layers() const noexcept { return layers_; }

  /// Begins a generation; refused while the one whose events it would record again is open.
  problem open(std::int64_t& generation) {
    set& s = set_of(last_ + 1);
    if (s.open) {
      return {status::unsupported, "generation {} of layer events may still be waited for",
              s.generation};
    }
    generation = ++last_;
    s.generation = generation;
    s.open = true;
    s.recorded.assign(s.recorded.size(), false);
    return {};
  }

  /// Ends a generation: all that wait for its layers have enqueued their waits.
  void close(std::int64_t generation) noexcept {
    if (set_of(generation).generation == generation) set_of(generation).open = false;
  }

  /// Whether `record` may be called: the generation is open, the layer there and not recorded.
  problem check_record(std::int64_t generation, int layer) const noexcept {
    if (auto const p = check_place(generation, layer)) return p;
    if (set_of(generation).recorded[static_cast<std::size_t>(layer)]) {
      return {status::unsupported, "layer {} of generation {} is recorded already", layer,
              generation};
    }
    return {};
  }

  /// Marks a layer complete once all before on the stream is.
  bool record(std::int64_t generation, int layer, typename D::stream stream) {
    if (check_record(generation, layer)) return false;
    set_of(generation).recorded[static_cast<std::size_t>(layer)] = true;
    return device_->record(event_of(generation, layer), stream);
  }

  /// Makes a stream wait for a layer.
  problem wait(std::int64_t generation, int layer, typename D::stream stream) {
    if (auto const p = check_place(generation, layer)) return p;
    if (!set_of(generation).recorded[static_cast<std::size_t>(layer)]) {
      return {status::unsupported, "layer {} of generation {} is not enqueued yet", layer,
              generation};
    }
    enqueuer<D> q(*device_);
    q.wait(stream, event_of(generation, layer));
    return q.result();
  }

  typename D::event event_of(std::int64_t generation, int layer) const noexcept {
    auto const first = static_cast<std::size_t>(generation) % sets_.size();
    return events_[first * static_cast<std::size_t>(layers_) + static_cast<std::size_t>(layer)];
  }

 private:
  struct set {
    std::int64_t generation = 0;
    bool open = false;
    std::vector<bool> recorded{};
  };

  set& set_of(std::int64_t generation) noexcept {
    return sets_[static_cast<std::size_t>(generation) % sets_.size()];
  }
  set const& set_of(std::int64_t generation) const noexcept {
    return sets_[static_cast<std::size_t>(generation) % sets_.size()];
  }

  problem check_place(std::int64_t generation, int layer) const noexcept {
    if (layer < 0 || layer >= layers_) {
      return {status::unsupported, "there are no events of layer {} among {}", layer, layers_};
    }
    if (generation < 1 || set_of(generation).generation != generation || !set_of(generation).open) {
      return {status::unsupported, "generation {} of layer events is not open; the last is {}",
              generation, last_};
    }
    return {};
  }

  D* device_;
  int layers_;
  std::vector<set> sets_{};
  std::vector<typename D::event> events_{};
  std::int64_t last_ = 0;
  bool ready_ = false;
};

}  // namespace kvarts::tier
