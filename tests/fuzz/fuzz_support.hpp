// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the fuzz targets of the file readers share.
#pragma once

#include "tool_error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <span>

namespace kvarts::fuzz {

inline std::span<std::byte const> input(std::uint8_t const* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

/// The result of `parse`, or none after the only exception that it may throw.
template <class Parse>
auto accepted(Parse parse, std::span<std::byte const> file)
    -> std::optional<decltype(parse(file, "input"))> {
  try {
    return parse(file, "input");
  } catch (tool::tool_error const&) {
    return std::nullopt;
  }
}

/// Ends the run when what must hold does not.
inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Reads every byte, so that a sanitizer sees a span that leaves its file.
inline void touch(std::span<std::byte const> bytes) {
  auto const mix = [](unsigned sum, std::byte b) {
    return sum * 31 + std::to_integer<unsigned>(b);
  };
  unsigned const volatile sum = std::accumulate(bytes.begin(), bytes.end(), 0u, mix);
  static_cast<void>(sum);
}

}  // namespace kvarts::fuzz
