// SPDX-License-Identifier: Apache-2.0
/// @file
/// Random pairs of indices: destinations differ, sources may repeat.
#pragma once

#include "support/random.hpp"

#include <kvarts/tier/index_pairs.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace kvarts::test {

struct index_lists {
  std::vector<std::int64_t> dst;
  std::vector<std::int64_t> src;
  std::vector<tier::index_pair<std::int32_t>> both{};

  index_lists(std::vector<std::int64_t> to, std::vector<std::int64_t> from)
      : dst(std::move(to)), src(std::move(from)) {
    for (std::size_t i = 0; i < dst.size(); ++i) {
      both.push_back({static_cast<std::int32_t>(dst[i]), static_cast<std::int32_t>(src[i])});
    }
  }

  /// int64, in two arrays.
  tier::index_pairs pairs() const {
    return {dst.data(), src.data(), static_cast<std::int64_t>(dst.size())};
  }
  /// int32, interleaved.
  tier::index_pairs narrow() const { return {both.data(), static_cast<std::int64_t>(both.size())}; }

  /// Puts other indices, all valid, into the arrays that were given away.
  void scramble() {
    std::fill(dst.begin(), dst.end(), 0);
    std::fill(src.begin(), src.end(), 0);
    std::fill(both.begin(), both.end(), tier::index_pair<std::int32_t>{});
  }

  /// `count` different ones of 0..room-1, in random order.
  static std::vector<std::int64_t> different(random_source& random, std::int64_t room,
                                             std::int64_t count) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(room));
    std::iota(all.begin(), all.end(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      std::swap(all[i], all[random.between(static_cast<int>(i), static_cast<int>(room) - 1)]);
    }
    all.resize(static_cast<std::size_t>(count));
    return all;
  }

  /// Any number of pairs.
  static index_lists random(random_source& random, std::int64_t dst_room, std::int64_t src_room) {
    auto to = different(random, dst_room, random.between(1, static_cast<int>(dst_room)));
    std::vector<std::int64_t> from;
    for (std::size_t i = 0; i < to.size(); ++i) {
      from.push_back(random.between(0, static_cast<int>(src_room) - 1));
    }
    return {std::move(to), std::move(from)};
  }

  /// Some of these sources, to as many destinations as there are.
  static index_lists chosen(random_source& random, std::int64_t dst_room,
                            std::vector<std::int64_t> const& sources) {
    auto to = different(random, dst_room, random.between(1, static_cast<int>(dst_room)));
    std::vector<std::int64_t> from;
    for (std::size_t i = 0; i < to.size(); ++i) {
      from.push_back(sources[random.between(0, static_cast<int>(sources.size()) - 1)]);
    }
    return {std::move(to), std::move(from)};
  }
};

}  // namespace kvarts::test
