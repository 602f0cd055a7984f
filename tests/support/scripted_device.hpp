// SPDX-License-Identifier: Apache-2.0
/// @file
/// A device in which everything happens as late or as early, and in any order, as streams and
/// events allow: a step is one part of a copy or one page of a launch, of a stream chosen at
/// random, where some are faster than others. What is enqueued without a wait that it needs goes
/// wrong for some seed.
///
/// Memory is that of the process. Addresses of mapped memory differ from the host's by
/// `map_distance`; a launch on memory that is not the device's, and a copy that does not join the
/// device and the host, are faults.
#pragma once

#include "support/page_coders.hpp"
#include "support/random.hpp"

#include <kvarts/tier/device.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvarts::test {

class scripted_device {
 public:
  using stream = int;
  using event = int;

  static constexpr std::ptrdiff_t map_distance = std::ptrdiff_t{1} << 48;

  explicit scripted_device(std::uint64_t seed, int streams = 9)
      : random_(seed), streams_(static_cast<std::size_t>(streams)) {
    patience_ = random_.between(0, 6);
    for (int i = 0; i < streams; ++i) speed_.push_back(1 << random_.between(0, 6));
  }

  // What the tier asks for.

  bool make_event(event& e) {
    if (events_left == 0) return false;
    --events_left;
    ++live_events;
    e = static_cast<int>(marks_.size());
    marks_.push_back(none);
    return true;
  }
  void destroy_event(event) {
    --live_events;
    ++events_left;
  }

  bool record(event e, stream s) {
    if (!accepts()) return false;
    marks_[static_cast<std::size_t>(e)] = static_cast<int>(reached_.size());
    reached_.push_back(false);
    return push(s, {.mark = marks_[static_cast<std::size_t>(e)]});
  }
  bool wait(stream s, event e) {
    if (!accepts()) return false;
    ++waits;
    int const mark = marks_[static_cast<std::size_t>(e)];
    if (capturing_stream == s && mark != none) fault("a capture waits for an event from outside");
    if (mark == none || ignored.contains(e)) return true;
    return push(s, {.mark = mark, .waits = true});
  }
  bool copy(std::byte* to, std::byte const* from, std::int64_t bytes, stream s) {
    if (!accepts()) return false;
    if (is_device(to) == is_device(from) || is_mapped(to) || is_mapped(from)) fault("a bad copy");
    ++copies;
    constexpr std::int64_t parts = 3;
    return run(s, static_cast<int>(parts), [=](int i) {
      std::int64_t const begin = bytes * i / parts;
      std::memcpy(to + begin, from + begin,
                  static_cast<std::size_t>(bytes * (i + 1) / parts - begin));
    });
  }
  bool upload(std::int32_t* to, std::int32_t const* from, std::int64_t count, stream s) {
    if (!accepts()) return false;
    if (!is_device(to)) fault("an upload that is not to the device");
    std::vector<std::int32_t> const taken(from, from + count);
    return run(s, 1, [=](int) { std::copy(taken.begin(), taken.end(), to); });
  }
  bool encode(tier::encode_launch const& l, stream s) { return launch(l, s); }
  bool decode(tier::decode_launch const& l, stream s) { return launch(l, s); }

  problem explain(tier::encode_launch const& l) const { return explain_codec(l.codec); }
  problem explain(tier::decode_launch const& l) const { return explain_codec(l.codec); }

  std::byte* mapped(std::byte const* host) const {
    return maps ? const_cast<std::byte*>(host) + map_distance : nullptr;
  }
  bool capturing(stream s) const { return s == capturing_stream; }

  // What tests do.

  event last_event() const { return static_cast<event>(marks_.size()) - 1; }

  /// Any other work: `parts` parts, in random order.
  bool run(stream s, int parts, std::function<void(int)> work) {
    operation op{.work = std::move(work)};
    op.parts.resize(static_cast<std::size_t>(parts));
    std::iota(op.parts.begin(), op.parts.end(), 0);
    shuffle(op.parts);
    return push(s, std::move(op));
  }

  void own(std::vector<std::byte> const& memory) {
    owned_.push_back({memory.data(), memory.data() + memory.size()});
  }

  /// Runs all that is left; what can never run is a fault.
  void finish() {
    while (step()) continue;
    for (auto const& s : streams_) {
      if (!s.empty()) fault("a stream waits for ever");
    }
  }

  std::string faults;         ///< what the tier did wrong
  std::set<event> ignored;    ///< waits for these are not enqueued
  int events_left = 1 << 20;  ///< then the device gives no more
  int calls_left = 1 << 30;   ///< then the device refuses all
  int live_events = 0;
  int copies = 0, launches = 0, waits = 0;
  bool maps = true;
  stream capturing_stream = -1;

 private:
  static constexpr int none = -1;

  struct operation {
    int mark = none;  ///< of an event: reached, or waited for
    bool waits = false;
    std::function<void(int)> work{};
    std::vector<int> parts{};  ///< that are left
  };

  bool accepts() { return calls_left > 0 && --calls_left >= 0; }

  /// Enqueues, and lets some of what is enqueued run.
  bool push(stream s, operation op) {
    streams_[static_cast<std::size_t>(s)].push_back(std::move(op));
    for (int i = random_.between(0, patience_); i > 0; --i) step();
    return true;
  }

  bool ready(std::deque<operation> const& s) const {
    return !s.empty() && (!s.front().waits || reached_[static_cast<std::size_t>(s.front().mark)]);
  }

  /// A stream that can go on, or -1; some are much faster than others.
  int choose() {
    int all = 0;
    for (std::size_t i = 0; i < streams_.size(); ++i) all += ready(streams_[i]) ? speed_[i] : 0;
    if (all == 0) return -1;
    int at = random_.between(1, all);
    std::size_t i = 0;
    while (!ready(streams_[i]) || (at -= speed_[i]) > 0) ++i;
    return static_cast<int>(i);
  }

  /// One part of the first operation of some stream; false when none can go on.
  bool step() {
    int const chosen = choose();
    if (chosen < 0) return false;
    auto& s = streams_[static_cast<std::size_t>(chosen)];
    operation& op = s.front();
    if (!op.parts.empty()) {
      int const part = op.parts.back();
      op.parts.pop_back();
      op.work(part);
    }
    if (!op.parts.empty()) return true;
    if (op.mark != none && !op.waits) reached_[static_cast<std::size_t>(op.mark)] = true;
    s.pop_front();
    return true;
  }

  template <class T>
  void shuffle(std::vector<T>& all) {
    for (std::size_t i = all.size(); i > 1; --i) {
      std::swap(all[i - 1],
                all[static_cast<std::size_t>(random_.between(0, static_cast<int>(i) - 1))]);
    }
  }

  template <class Coded, class Plain>
  bool launch(tier::page_launch<Coded, Plain> l, stream s) {
    if (!accepts()) return false;
    ++launches;
    if (is_mapped(l.coded)) {
      l.coded -= map_distance;
    } else if (!is_device(l.coded)) {
      fault("a launch on host memory");
    }
    bool const lists = is_device(l.plain_pages) && (!l.coded_pages || is_device(l.coded_pages));
    if (!is_device(l.plain.data) || !lists) fault("a launch reads host memory");
    return run(s, static_cast<int>(l.pages), [l](int i) { run_page(l, i); });
  }

  problem explain_codec(codec_info const& c) const {
    if (find_page_coder(c) != nullptr) return {};
    return {status::unsupported, "no launch has codecs of {} bits", c.bits};
  }

  bool is_device(void const* at) const {
    auto const* const p = static_cast<std::byte const*>(at);
    return std::any_of(owned_.begin(), owned_.end(),
                       [&](auto const& o) { return o.first <= p && p < o.second; });
  }
  bool is_mapped(std::byte const* at) const {
    return reinterpret_cast<std::uintptr_t>(at) >= std::uintptr_t{map_distance};  // none is so high
  }
  void fault(char const* what) { faults += std::string(what) + "; "; }

  random_source random_;
  int patience_;
  std::vector<int> speed_;  ///< by stream
  std::vector<std::deque<operation>> streams_;
  std::vector<int> marks_;     ///< by event: its last mark
  std::vector<bool> reached_;  ///< by mark
  std::vector<std::pair<std::byte const*, std::byte const*>> owned_;
};

}  // namespace kvarts::test
