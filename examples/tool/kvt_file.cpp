// SPDX-License-Identifier: Apache-2.0
#include "kvt_file.hpp"

#include "tool_error.hpp"

#include <kvarts/crc32c.hpp>
#include <kvarts/kvt.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace kvarts::tool {

namespace {

/// Takes `count` floats from the front of `bytes`.
std::vector<float> take_floats(std::span<std::byte const>& bytes, std::size_t count) {
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes.data(), count * sizeof(float));
  bytes = bytes.subspan(count * sizeof(float));
  return values;
}

void throw_if(problem const& found, std::string_view name) {
  if (found) throw tool_error(fmt::format("{}: {}", name, found.sentence()));
}

}  // namespace

kvt_contents parse_kvt_file(std::span<std::byte const> file, std::string_view name) {
  kvt_result const read = parse_kvt(file);
  throw_if(read.error, name);
  kvt_contents contents{read.header, {}, {}, read.payload};
  auto const values =
      static_cast<std::size_t>(read.header.heads) * static_cast<std::size_t>(read.header.head_dim);
  auto transform = read.transform;
  if ((read.header.transform & kvt_center) != 0) contents.center = take_floats(transform, values);
  if ((read.header.transform & kvt_norm) != 0) contents.norm = take_floats(transform, values);
  return contents;
}

void write_kvt(std::string const& path, kvt_contents const& contents) {
  auto const center = std::as_bytes(std::span(contents.center));
  auto const norm = std::as_bytes(std::span(contents.norm));
  kvt_header header = contents.header;
  header.transform =
      static_cast<std::uint8_t>((header.transform & ~(kvt_center | kvt_norm)) |
                                (center.empty() ? 0 : kvt_center) | (norm.empty() ? 0 : kvt_norm));
  header.payload_bytes = static_cast<std::int64_t>(contents.payload.size());
  header.transform_crc = crc32c(norm, crc32c(center));
  header.payload_crc = crc32c(contents.payload);
  throw_if(check_kvt_header(header), path);
  std::size_t const values =
      static_cast<std::size_t>(header.heads) * static_cast<std::size_t>(header.head_dim);
  for (std::size_t const size : {contents.center.size(), contents.norm.size()}) {
    if (size != 0 && size != values) {
      throw tool_error(fmt::format("{}: center or norm has {} values, not {} heads x {} head_dim",
                                   path, size, header.heads, header.head_dim));
    }
  }
  auto const bytes = serialize(header);
  write_file(path, {bytes, center, norm, contents.payload});
}

}  // namespace kvarts::tool
