// SPDX-License-Identifier: Apache-2.0
// LMCache's serde: chunks `[2, layers, tokens, heads, head_dim]` as two page files, K before V.
// Both are checked before the first number is decoded.
#include "c_guard.hpp"

#include <cstring>
#include <limits>
#include <vector>

namespace kvarts::adapters {

namespace {

/// The two page files of a chunk.
struct chunk_files {
  tier::geometry shape;
  tier::page_format format;
  tier::page_place keys, values;

  chunk_files(host_tier const& t, std::int64_t tokens, std::uint8_t const* key)
      : shape(t.chunk_geometry(tokens_of(tokens))), format(t.format(shape)) {
    sha256_digest name{};
    if (key != nullptr) std::memcpy(name.data(), key, name.size());
    keys = tier::whole_page(shape, tier::side::keys, name);
    values = tier::whole_page(shape, tier::side::values, name);
  }

  std::int64_t key_bytes() const noexcept { return tier::page_file_bytes(format, keys); }
  std::int64_t bytes() const noexcept {
    return key_bytes() + tier::page_file_bytes(format, values);
  }

  /// The payloads in `data` as a tier of one page.
  template <class Byte>
  tier::basic_tier_view<Byte> view(Byte* data) const noexcept {
    return {&shape, 1, data + kvt_header_bytes, data + key_bytes() + kvt_header_bytes, coders};
  }

 private:
  static std::int32_t tokens_of(std::int64_t tokens) {
    if (tokens < 1 || tokens > std::numeric_limits<std::int32_t>::max()) {
      throw_if({status::bad_tokens, "a chunk has {} tokens", tokens});
    }
    return static_cast<std::int32_t>(tokens);
  }
};

/// The layers of a chunk.
template <class Byte>
std::vector<tier::plain_layer<Byte>> layers_of(host_tier const& t, Byte* chunk,
                                               std::int64_t tokens) {
  std::int64_t const layer_bytes = tokens * t.row_bytes();
  int const layers = t.geometry().layers;
  std::vector<tier::plain_layer<Byte>> all;
  for (int l = 0; l < layers; ++l) {
    layer_memory<Byte> const memory{chunk + l * layer_bytes, chunk + (layers + l) * layer_bytes};
    all.push_back(t.plain(memory, l, tokens));
  }
  return all;
}

/// The one page of a chunk moves as a whole, to index 0 from index 0.
constexpr std::int64_t first_page = 0;

tier::page_moves whole_chunk(host_tier const& t, std::int64_t tokens) {
  return {tier::index_pairs(&first_page, &first_page, 1), tokens, t.threads()};
}

}  // namespace

}  // namespace kvarts::adapters

using namespace kvarts;
using namespace kvarts::adapters;

std::int64_t kvarts_estimate_serialized_size(kvarts_tier const* handle, std::int64_t tokens) {
  return guarded<std::int64_t>(
      -1, [&] { return chunk_files(tier_of(handle), tokens, nullptr).bytes(); });
}

std::int64_t kvarts_serialize(kvarts_tier const* handle, void const* chunk, std::int64_t tokens,
                              void* to, std::int64_t to_bytes, std::uint8_t const key[32]) {
  return guarded<std::int64_t>(-1, [&] {
    host_tier const& t = tier_of(handle);
    require(chunk != nullptr && to != nullptr && key != nullptr, "a pointer is null");
    chunk_files const files(t, tokens, key);
    if (to_bytes < files.bytes()) {
      throw_if({status::bad_page, "there is room for {} bytes, but the chunk takes {}", to_bytes,
                files.bytes()});
    }
    auto* const data = static_cast<std::byte*>(to);
    auto const layers = layers_of(t, static_cast<std::byte const*>(chunk), tokens);
    tier::layer_range const all{0, t.geometry().layers};
    if (tier::encode_layers(files.view(data), layers, all, whole_chunk(t, tokens)).code !=
        status::ok) {
      throw error(status::unsupported, "the chunk cannot be encoded");
    }
    auto const file = std::span(data, static_cast<std::size_t>(files.bytes()));
    auto const cut = static_cast<std::size_t>(files.key_bytes());
    throw_if(tier::seal_page(files.format, files.keys, file.first(cut)));
    throw_if(tier::seal_page(files.format, files.values, file.subspan(cut)));
    return files.bytes();
  });
}

std::int32_t kvarts_deserialize(kvarts_tier const* handle, void const* from,
                                std::int64_t from_bytes, void* chunk, std::int64_t tokens,
                                std::uint8_t const key[32]) {
  return guarded<std::int32_t>(-1, [&] {
    host_tier const& t = tier_of(handle);
    require(chunk != nullptr && from != nullptr && key != nullptr, "a pointer is null");
    chunk_files const files(t, tokens, key);
    if (from_bytes < files.bytes()) {
      throw_if(
          {status::bad_file, "{} bytes are too few for a chunk of {}", from_bytes, files.bytes()});
    }
    auto const* const data = static_cast<std::byte const*>(from);
    auto const file = std::span(data, static_cast<std::size_t>(files.bytes()));
    auto const cut = static_cast<std::size_t>(files.key_bytes());
    throw_if(tier::check_page_file(files.format, files.keys, file.first(cut)));
    throw_if(tier::check_page_file(files.format, files.values, file.subspan(cut)));
    auto const layers = layers_of(t, static_cast<std::byte*>(chunk), tokens);
    tier::layer_range const all{0, t.geometry().layers};
    if (tier::decode_layers(files.view(data), layers, all, whole_chunk(t, tokens)) != status::ok) {
      throw error(status::unsupported, "the chunk cannot be decoded");
    }
    return 0;
  });
}
