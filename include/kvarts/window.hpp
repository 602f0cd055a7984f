// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which tokens of a sequence are coded and which stay in 16 bits: a function of the token count
/// alone.
#pragma once

#include <kvarts/codec.hpp>
#include <kvarts/status.hpp>

#include <algorithm>
#include <cstdint>

namespace kvarts {

/// The first `sink` and the last `recent` tokens stay in 16 bits.
struct windows {
  std::int32_t sink = 0;
  std::int32_t recent = 0;

  friend constexpr bool operator==(windows const&, windows const&) = default;
};

/// How many tokens leave the recent window at a time: the group for codecs grouped along tokens
/// (their groups are coded whole), else one. InnerQ's values and KIVI's keys leave 32 at a time.
constexpr int eviction_step(axis grouped_along, int group) noexcept {
  return grouped_along == axis::token ? group : 1;
}

/// Where the parts of a sequence of n tokens end: sinks are 0..sinks-1, coded tokens
/// sinks..coded_end-1, recent ones coded_end..n-1.
struct partition {
  std::int64_t sinks = 0;
  std::int64_t coded_end = 0;
  std::int64_t tokens = 0;

  constexpr std::int64_t coded() const noexcept { return coded_end - sinks; }
  constexpr std::int64_t recent() const noexcept { return tokens - coded_end; }
  friend constexpr bool operator==(partition const&, partition const&) = default;
};

/// The partition after n tokens: the first min(n, sink) are sinks; of the rest, whole steps of what
/// exceeds the recent window are coded. So the recent window holds `recent` to `recent + step - 1`
/// tokens once it is full. A sequence whose transform is not frozen codes nothing. Sources: InnerQ,
/// KIVI (with sink = 0).
constexpr partition partition_after(std::int64_t tokens, windows w, int step,
                                    bool frozen = true) noexcept {
  std::int64_t const sinks = std::min<std::int64_t>(tokens, w.sink);
  std::int64_t const excess = std::max<std::int64_t>(0, tokens - w.sink - w.recent);
  return {sinks, sinks + (frozen ? excess / step * step : 0), tokens};
}

/// First fault of windows for a codec: negative sizes, or a sink that groups of tokens do not
/// divide (positions decide which page and group a token is coded in).
constexpr problem check(windows w, axis grouped_along, int group) noexcept {
  if (w.sink < 0) return {status::bad_window, "a sink window of {} tokens", w.sink};
  if (w.recent < 0) return {status::bad_window, "a recent window of {} tokens", w.recent};
  if (grouped_along == axis::token && w.sink % group != 0) {
    return {status::bad_window,
            "a sink window of {} tokens (w_sink) is no multiple of the group of {} tokens", w.sink,
            group};
  }
  return {};
}

}  // namespace kvarts
