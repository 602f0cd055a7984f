// SPDX-License-Identifier: Apache-2.0
/// @file
/// Sizes of memory as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace CLI {
class Option;
}

namespace kvarts::tool {

/// The bytes that 8000000000, 8e9, 8GB, 7.5GB or 8GiB stand for (k, M, G, T: powers of 1000, with i
/// of 1024), rounded to whole ones; nothing for other texts and for sizes outside 1..2^60.
std::optional<std::int64_t> parse_bytes(std::string_view text);

/// "8,000,000,000".
std::string with_commas(std::int64_t n);

/// Makes an option for a number take `parse_bytes`'s texts.
void takes_bytes(CLI::Option& option);

}  // namespace kvarts::tool
