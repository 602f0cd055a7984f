// SPDX-License-Identifier: Apache-2.0
#include "coded_file.hpp"

#include "tool_error.hpp"

#include <fmt/format.h>

#include <utility>

namespace kvarts::tool {

namespace {

axis axis_of(kvt_header const& header) noexcept {
  switch (header.group_axis) {
    case kvt_group_axis::channels: return axis::channel;
    case kvt_group_axis::tokens: return axis::token;
    default: return axis::row;
  }
}

codec_ops const& codec_of(kvt_header const& header, std::string const& name) {
  codec_ops const* const codec = find_codec(header.codec_name(), axis_of(header));
  if (codec == nullptr) {
    throw tool_error(fmt::format("{}: this build has no codec {} of that grouping", name,
                                 in_quotes(header.codec_name())));
  }
  kvt_header expected = header;
  codec->describe(expected);
  if (expected != header) {
    throw tool_error(fmt::format("{}: bits, grouping or parameters are not those of codec {}", name,
                                 header.codec_name()));
  }
  return *codec;
}

transform transform_of(kvt_contents contents, std::string const& name) {
  kvt_header const& h = contents.header;
  transform t{h.heads,
              h.head_dim,
              std::move(contents.center),
              std::move(contents.norm),
              {h.rotation_rounds, h.rotation_seed}};
  if (problem const p = check(t, h.heads, h.head_dim)) {
    throw tool_error(fmt::format("{}: {}", name, p.sentence()));
  }
  return t;
}

}  // namespace

layout payload_layout(codec_ops const& codec, kvt_header const& header, std::string const& name) {
  try {
    return codec.make_layout(header);
  } catch (error const& e) {
    throw tool_error(fmt::format("{}: {}", name, e.what()));
  }
}

coded_file open_coded_file(std::string const& path) {
  auto [file, contents] = open_kvt(path);
  kvt_header const header = contents.header;
  codec_ops const& codec = codec_of(header, path);
  layout const map = payload_layout(codec, header, path);
  if (map.size_bytes() != header.payload_bytes) {
    throw tool_error(fmt::format("{}: the payload has {} bytes, but {} tokens of codec {} take {}",
                                 path, header.payload_bytes, header.tokens, header.codec_name(),
                                 map.size_bytes()));
  }
  coded_source const coded{contents.payload.data(), map};
  transform t = transform_of(std::move(contents), path);
  return {std::move(file), header, &codec, std::move(t), coded};
}

std::int64_t tokens_a_step(layout const& map) noexcept {
  constexpr std::int64_t values = 1 << 20;
  return round_up(values / (std::int64_t{map.heads} * map.head_dim) + 1, map.tile_tokens);
}

}  // namespace kvarts::tool
