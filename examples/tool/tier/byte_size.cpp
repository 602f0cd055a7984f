// SPDX-License-Identifier: Apache-2.0
#include "tier/byte_size.hpp"

#include "tool_error.hpp"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>

namespace kvarts::tool {

namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 60;

/// What a unit multiplies by; nothing for an unknown one.
std::optional<double> unit_factor(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1.0;
  constexpr std::string_view prefixes = "kMGT";
  auto const power = prefixes.find(unit.front() == 'K' ? 'k' : unit.front());
  if (power == std::string_view::npos) return {};
  std::string_view const rest = unit.substr(1);
  if (rest != "B" && rest != "iB") return {};
  return std::pow(rest == "B" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
}

}  // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  char const* const end = text.data() + text.size();
  std::int64_t whole = 0;
  if (auto const [rest, error] = std::from_chars(text.data(), end, whole);
      error == std::errc() && rest == end) {
    return whole >= 1 && whole <= most_bytes ? std::optional(whole) : std::nullopt;
  }
  double number = 0;
  auto const [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return {};
  auto const factor = unit_factor({rest, static_cast<std::size_t>(end - rest)});
  if (!factor) return {};
  double const bytes = std::round(number * *factor);
  bool const fits = bytes >= 1 && bytes <= static_cast<double>(most_bytes);  // false for NaN
  return fits ? std::optional(static_cast<std::int64_t>(bytes)) : std::nullopt;
}

std::string with_commas(std::int64_t n) {
  std::string text = std::to_string(n);
  auto const first = text.front() == '-' ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > first; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

void takes_bytes(CLI::Option& option) {
  option.type_name("BYTES")->transform(CLI::Validator(
      [](std::string& text) -> std::string {
        auto const bytes = parse_bytes(text);
        if (!bytes) {
          return in_quotes(text) + " is no size such as 8000000000, 8e9, 8GB or 8GiB up to 2^60";
        }
        text = std::to_string(*bytes);
        return {};
      },
      ""));
}

}  // namespace kvarts::tool
