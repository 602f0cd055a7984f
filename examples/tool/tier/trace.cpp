// SPDX-License-Identifier: Apache-2.0
#include "tier/trace.hpp"

#include "file.hpp"
#include "json_fields.hpp"
#include "tool_error.hpp"

#include <kvarts/bits.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kvarts::tool {

namespace {

using nlohmann::json;

constexpr std::int64_t most_of_request = std::int64_t{1} << 31;
/// Of a whole trace: the bytes of a sweep over it still fit into 64 bits.
constexpr std::int64_t most_tokens = std::int64_t{1} << 36;

/// Numbers for the ids of a trace, in the order in which they first come.
class id_numbers {
 public:
  /// Texts and whole numbers are ids; 7 and "7" are two.
  std::uint32_t of(json const& id, json_fields const& line, char const* field) {
    bool const fits = id.is_number_integer() || (id.is_string() && !id.empty());
    if (!fits)
      line.fail(fmt::format("has ids in \"{}\" that are neither texts nor whole numbers", field));
    auto const next = static_cast<std::uint32_t>(numbers_.size());
    return numbers_.try_emplace(id.dump(-1, ' ', true, json::error_handler_t::replace), next)
        .first->second;
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(numbers_.size()); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

/// The field as a list; a single value is a list of one.
std::vector<json> list_of(json_fields const& line, char const* field) {
  json const& value = line.at(field);
  if (value.is_array()) return value.get<std::vector<json>>();
  return {value};
}

std::vector<prefix_use> read_prefixes(json_fields const& line, id_numbers& ids) {
  auto const names = list_of(line, "prefix");
  auto const lengths = list_of(line, "prefix_length");
  if (names.size() != lengths.size()) {
    line.fail(fmt::format("has {} prefixes, but {} lengths of them", names.size(), lengths.size()));
  }
  std::vector<prefix_use> uses;
  for (std::size_t i = 0; i < names.size(); ++i) {
    uses.push_back({ids.of(names[i], line, "prefix"),
                    line.whole(lengths[i], "prefix_length", 1, most_of_request)});
  }
  return uses;
}

std::vector<prefix_use> read_blocks(json_fields const& line, id_numbers& ids,
                                    std::int64_t block_tokens, std::int64_t input) {
  json const& blocks = line.at("hash_ids");
  if (!blocks.is_array()) line.fail("has \"hash_ids\" that are no list");
  auto const most = static_cast<std::size_t>(ceil_div(input, block_tokens));
  if (blocks.size() > most) {
    line.fail(fmt::format("has {} blocks, but {} tokens fill {} of {}", blocks.size(), input, most,
                          block_tokens));
  }
  std::vector<prefix_use> uses;
  std::int64_t left = input;
  for (json const& id : blocks) {
    uses.push_back({ids.of(id, line, "hash_ids"), std::min(block_tokens, left)});
    left -= uses.back().tokens;
  }
  return uses;
}

void check_distinct(std::vector<prefix_use> const& uses, json_fields const& line) {
  std::vector<std::uint32_t> ids;
  for (prefix_use const& use : uses) ids.push_back(use.id);
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end()) {
    line.fail("has the same prefix or block twice");
  }
}

request read_request(json_fields const& line, id_numbers& ids, std::int64_t block_tokens) {
  line.at("input_length");
  std::int64_t const input = line.number("input_length", 1, most_of_request, 0);
  std::int64_t const output = line.number("output_length", 0, most_of_request, 0);
  if (line.has("prefix") == line.has("hash_ids")) {
    line.fail("has to say either \"prefix\" or \"hash_ids\"");
  }
  request r;
  r.prefixes =
      line.has("prefix") ? read_prefixes(line, ids) : read_blocks(line, ids, block_tokens, input);
  check_distinct(r.prefixes, line);
  std::int64_t shared = 0;
  for (prefix_use const& use : r.prefixes) shared += use.tokens;
  if (shared > input) {
    line.fail(fmt::format("has prefixes of {} tokens in an input of {}", shared, input));
  }
  r.new_tokens = input - shared + output;
  r.prompt_tokens = static_cast<double>(input);
  return r;
}

}  // namespace

workload parse_trace(std::string_view text, std::string_view name, std::int64_t block_tokens) {
  workload w;
  id_numbers ids;
  std::int64_t number = 0;
  std::int64_t tokens = 0;
  while (!text.empty()) {
    std::string_view const line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    std::string const where = fmt::format("{}: line {}", name, number);
    json const object = json::parse(line.begin(), line.end(), nullptr, false);
    if (object.is_discarded()) throw tool_error(where + " is no JSON");
    w.requests.push_back(read_request(json_fields(object, where), ids, block_tokens));
    request const& last = w.requests.back();
    tokens += static_cast<std::int64_t>(last.prompt_tokens) + last.new_tokens;
    if (tokens > most_tokens) throw tool_error(where + " makes it more than 2^36 tokens");
  }
  if (w.requests.empty()) throw tool_error(fmt::format("{}: there is no request in it", name));
  w.prefix_count = ids.count();
  return w;
}

workload read_trace(std::string const& path, std::int64_t block_tokens) {
  auto const parse = [&](std::span<std::byte const> bytes, std::string_view name) {
    return parse_trace({reinterpret_cast<char const*>(bytes.data()), bytes.size()}, name,
                       block_tokens);
  };
  return open_with(parse, path).contents;
}

}  // namespace kvarts::tool
