// SPDX-License-Identifier: Apache-2.0
#include "safetensors.hpp"

#include "safetensors_header.hpp"
#include "tool_error.hpp"

#include <kvarts/bits.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace kvarts::tool {

namespace {

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000;  // the format's own limit

/// Splits off the JSON header; what remains of `file` are the tensors' bytes.
std::string_view take_header(std::span<std::byte const>& file, std::string_view name) {
  auto const fail = [&](std::string const& what) {
    throw tool_error(fmt::format("{}: {}", name, what));
  };
  if (file.size() < length_bytes) {
    fail(fmt::format("{} bytes are too few for a .safetensors file", file.size()));
  }
  auto const length = load_unaligned<std::uint64_t>(file.data());
  file = file.subspan(length_bytes);
  if (length > max_header_bytes) {
    fail(fmt::format("header of {} bytes is over the limit of {}; not a .safetensors file?", length,
                     max_header_bytes));
  }
  if (length > file.size()) {
    fail(fmt::format("header of {} bytes, but only {} are left in the file", length, file.size()));
  }
  std::string_view const json(reinterpret_cast<char const*>(file.data()), length);
  if (!json.starts_with('{')) fail("header does not begin with '{'; not a .safetensors file?");
  file = file.subspan(length);
  return json;
}

/// The ranges must follow one another, in whatever order, from 0 to the end of the data.
void check_ranges(std::vector<tensor_entry>& tensors, std::uint64_t data_bytes,
                  std::string_view name) {
  std::sort(tensors.begin(), tensors.end(), [](auto const& a, auto const& b) {
    return std::tie(a.range.begin, a.range.end) < std::tie(b.range.begin, b.range.end);
  });
  std::uint64_t covered = 0;
  for (tensor_entry const& entry : tensors) {
    auto const [begin, end] = entry.range;
    if (begin > end || end > data_bytes) {
      throw tool_error(fmt::format("{}: tensor {} has bytes {} to {}, but the data has {}", name,
                                   in_quotes(entry.name), begin, end, data_bytes));
    }
    if (begin < covered) {
      throw tool_error(
          fmt::format("{}: tensor {} begins at byte {}, inside another one that ends at {}", name,
                      in_quotes(entry.name), begin, covered));
    }
    if (begin > covered) {
      throw tool_error(fmt::format("{}: bytes {} to {} before tensor {} belong to no tensor", name,
                                   covered, begin, in_quotes(entry.name)));
    }
    covered = end;
  }
  if (covered != data_bytes) {
    throw tool_error(
        fmt::format("{}: the last {} bytes belong to no tensor", name, data_bytes - covered));
  }
}

/// The header's text, padded with spaces so that the data begins at a multiple of 8 bytes.
std::string dump(nlohmann::ordered_json const& header, std::string const& path) try {
  std::string json = header.dump();
  json.resize(static_cast<std::size_t>(round_up(static_cast<std::int64_t>(json.size()), 8)), ' ');
  return json;
} catch (nlohmann::json::type_error const&) {
  throw tool_error(path + ": cannot write: a name or its metadata is not valid UTF-8");
}

}  // namespace

safetensors parse_safetensors(std::span<std::byte const> file, std::string_view name) {
  std::string_view const json = take_header(file, name);
  safetensors_header header = parse_safetensors_header(json, name);
  check_ranges(header.tensors, file.size(), name);
  safetensors contents;
  contents.metadata = std::move(header.metadata);
  for (tensor_entry& entry : header.tensors) {
    auto const [begin, end] = entry.range;
    tensor values{entry.dtype, std::move(entry.shape), file.subspan(begin, end - begin)};
    check_size(values, fmt::format("{}: tensor {}", name, in_quotes(entry.name)));
    contents.tensors.emplace(std::move(entry.name), std::move(values));
  }
  return contents;
}

void write_safetensors(std::string const& path, safetensors const& contents) {
  std::vector<std::pair<std::string const, tensor> const*> order;
  for (auto const& named : contents.tensors) order.push_back(&named);
  std::stable_sort(order.begin(), order.end(), [](auto const* a, auto const* b) {
    return element_size(a->second.dtype) > element_size(b->second.dtype);
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!contents.metadata.empty()) header["__metadata__"] = contents.metadata;
  std::vector<std::span<std::byte const>> parts(2);
  std::size_t end = 0;
  for (auto const* const named : order) {
    auto const& [name, values] = *named;
    check_size(values, fmt::format("{}: tensor {}", path, in_quotes(name)));
    std::size_t const begin = std::exchange(end, end + values.bytes.size());
    header[name] = {
        {"dtype", name_of(values.dtype)}, {"shape", values.shape}, {"data_offsets", {begin, end}}};
    parts.push_back(values.bytes);
  }
  std::string const json = dump(header, path);
  std::uint64_t const length = json.size();
  parts[0] = std::as_bytes(std::span(&length, 1));
  parts[1] = std::as_bytes(std::span(json));
  write_file(path, parts);
}

}  // namespace kvarts::tool
