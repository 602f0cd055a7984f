// SPDX-License-Identifier: Apache-2.0
/// @file
/// Requests of the user's own from a JSONL file: one object a line.
#pragma once

#include "tier/simulation.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kvarts::tool {

/// Reads lines of either kind, in the order in which they are served:
///   {"id": "a", "prefix": ["system", "doc7"], "prefix_length": [1024, 3000],
///    "input_length": 4100, "output_length": 120}
///   {"id": 2, "hash_ids": [46, 47, 48], "input_length": 1400, "output_length": 52}
/// Prefixes and blocks have ids, texts or whole numbers, and lie one after another from the first
/// token on; the blocks hold `block_tokens` tokens, the last one what is left of the input.
/// `output_length` may be missing; other fields ("timestamp") are skipped. A line that is not so
/// throws `tool_error` with `name` and the line's number.
workload parse_trace(std::string_view text, std::string_view name, std::int64_t block_tokens);

/// `parse_trace` of a file.
workload read_trace(std::string const& path, std::int64_t block_tokens);

}  // namespace kvarts::tool
