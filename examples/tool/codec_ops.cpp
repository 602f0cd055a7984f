// SPDX-License-Identifier: Apache-2.0
#include "codec_ops.hpp"

#include "codec_ops_of.hpp"

#include <algorithm>
#include <utility>

namespace kvarts::tool {

codec_ops const* find_codec(std::string_view name, axis along) {
  if (auto const* const ops = find_codec_along<axis::row>(name)) return ops;
  if (along == axis::channel) return find_codec_along<axis::channel>(name);
  if (along == axis::token) return find_codec_along<axis::token>(name);
  return nullptr;
}

layout tiles_of(codec_ops const& codec, int group, int heads, int head_dim, std::int64_t tokens) {
  kvt_header header;
  header.layout = kvt_layout::head_tiles;
  header.group = group;
  header.tile_tokens = 0;
  header.heads = heads;
  header.head_dim = head_dim;
  header.tokens = tokens;
  return codec.make_layout(header);
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for_each_codec([&](auto tag) {
    std::string name{std::string_view(decltype(tag)::type::name())};
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  });
  return names;
}

}  // namespace kvarts::tool
