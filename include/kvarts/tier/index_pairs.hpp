// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which pages (or tokens) move where: pairs of indices as engines keep them, and their checks.
#pragma once

#include <kvarts/status.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace kvarts::tier {

/// One pair as TensorRT-LLM stores them.
template <class Index>
struct index_pair {
  Index dst = 0;
  Index src = 0;
};

/// `count` pairs, not owning: what `src(i)` names becomes what `dst(i)` names. Indices are int32 or
/// int64, in two arrays or interleaved.
class index_pairs {
 public:
  constexpr index_pairs() noexcept = default;
  constexpr index_pairs(std::int32_t const* dst, std::int32_t const* src,
                        std::int64_t count) noexcept
      : dst32_(dst), src32_(src), count_(count) {}
  constexpr index_pairs(std::int64_t const* dst, std::int64_t const* src,
                        std::int64_t count) noexcept
      : dst64_(dst), src64_(src), count_(count) {}
  constexpr index_pairs(index_pair<std::int32_t> const* pairs, std::int64_t count) noexcept
      : pairs32_(pairs), count_(count) {}
  constexpr index_pairs(index_pair<std::int64_t> const* pairs, std::int64_t count) noexcept
      : pairs64_(pairs), count_(count) {}

  constexpr std::int64_t count() const noexcept { return count_; }

  constexpr std::int64_t dst(std::int64_t i) const noexcept {
    if (pairs32_ != nullptr) return pairs32_[i].dst;
    if (pairs64_ != nullptr) return pairs64_[i].dst;
    return dst32_ != nullptr ? std::int64_t{dst32_[i]} : dst64_[i];
  }
  constexpr std::int64_t src(std::int64_t i) const noexcept {
    if (pairs32_ != nullptr) return pairs32_[i].src;
    if (pairs64_ != nullptr) return pairs64_[i].src;
    return src32_ != nullptr ? std::int64_t{src32_[i]} : src64_[i];
  }

  /// Whether there is an array for the indices that are counted.
  constexpr bool present() const noexcept {
    return count_ == 0 || pairs32_ != nullptr || pairs64_ != nullptr ||
           (dst32_ != nullptr && src32_ != nullptr) || (dst64_ != nullptr && src64_ != nullptr);
  }

 private:
  std::int32_t const* dst32_ = nullptr;
  std::int32_t const* src32_ = nullptr;
  std::int64_t const* dst64_ = nullptr;
  std::int64_t const* src64_ = nullptr;
  index_pair<std::int32_t> const* pairs32_ = nullptr;
  index_pair<std::int64_t> const* pairs64_ = nullptr;
  std::int64_t count_ = 0;
};

namespace detail {

/// First destination of `begin..begin + seen.size() - 1` that occurs twice, or -1.
template <std::size_t Words>
constexpr std::int64_t twice_in_window(index_pairs const& pairs, std::int64_t begin,
                                       std::array<std::uint64_t, Words>& seen) noexcept {
  seen.fill(0);
  for (std::int64_t i = 0; i < pairs.count(); ++i) {
    std::int64_t const at = pairs.dst(i) - begin;
    if (at < 0 || at >= std::int64_t{64 * Words}) continue;
    std::uint64_t& word = seen[static_cast<std::size_t>(at) / 64];
    std::uint64_t const bit = std::uint64_t{1} << (at % 64);
    if ((word & bit) != 0) return pairs.dst(i);
    word |= bit;
  }
  return -1;
}

/// A destination that occurs twice, or -1, by a bitmap on the stack that passes over `lowest` to
/// `highest`: one pass over the pairs for each 2^18 indices between them.
constexpr std::int64_t twice(index_pairs const& pairs, std::int64_t lowest,
                             std::int64_t highest) noexcept {
  std::array<std::uint64_t, 4096> seen{};
  for (std::int64_t begin = lowest; begin <= highest; begin += std::int64_t{64 * seen.size()}) {
    std::int64_t const found = twice_in_window(pairs, begin, seen);
    if (found >= 0) return found;
  }
  return -1;
}

}  // namespace detail

/// First fault of pairs between `dst_room` and `src_room` things: an index outside of them, or a
/// destination that occurs twice. Sources may repeat. Allocates nothing.
constexpr problem check(index_pairs const& pairs, std::int64_t dst_room,
                        std::int64_t src_room) noexcept {
  if (pairs.count() < 0 || !pairs.present()) {
    return {status::bad_tokens, "there are no arrays for {} pairs of indices", pairs.count()};
  }
  if (pairs.count() == 0) return {};
  std::int64_t lowest = dst_room;
  std::int64_t highest = 0;
  for (std::int64_t i = 0; i < pairs.count(); ++i) {
    std::int64_t const dst = pairs.dst(i);
    std::int64_t const src = pairs.src(i);
    if (dst < 0 || dst >= dst_room) {
      return {status::bad_page, "destination {} is outside the room of {}", dst, dst_room};
    }
    if (src < 0 || src >= src_room) {
      return {status::bad_page, "source {} is outside the room of {}", src, src_room};
    }
    lowest = std::min(lowest, dst);
    highest = std::max(highest, dst);
  }
  std::int64_t const found = detail::twice(pairs, lowest, highest);
  if (found >= 0) return {status::bad_page, "destination {} occurs twice", found};
  return {};
}

}  // namespace kvarts::tier
