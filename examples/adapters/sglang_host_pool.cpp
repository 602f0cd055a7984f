// SPDX-License-Identifier: Apache-2.0
// SGLang's host pool: sizes, and tokens of all layers out or of one layer back, by tables of
// addresses and int64 indices.
#include "c_guard.hpp"

#include <vector>

namespace kvarts::adapters {

namespace {

tier::tier_view view_of(host_tier const& t, kvarts_host_pool const* host) {
  require(host != nullptr, "the host pool is null");
  std::int64_t const page = t.geometry().page_tokens;
  if (host->tokens < 0 || host->tokens % page != 0) {
    throw_if({status::bad_page, "{} tokens of the host pool are no whole number of pages of {}",
              host->tokens, page});
  }
  throw_if(tier::check(t.geometry(), host->tokens / page));
  return {&t.geometry(), host->tokens / page, static_cast<std::byte*>(host->keys),
          static_cast<std::byte*>(host->values), coders};
}

std::byte const* address(std::uint64_t const* table, std::size_t layer) {
  return reinterpret_cast<std::byte const*>(static_cast<std::uintptr_t>(table[layer]));
}

tier::page_moves moves_of(host_tier const& t, std::int64_t const* dst, std::int64_t const* src,
                          std::int64_t count) {
  return {tier::index_pairs(dst, src, count), 1, t.threads()};
}

}  // namespace

}  // namespace kvarts::adapters

using namespace kvarts;
using namespace kvarts::adapters;

std::int64_t kvarts_host_bytes(kvarts_tier const* handle, std::int32_t side, std::int64_t tokens) {
  return guarded<std::int64_t>(-1, [&] {
    tier::geometry const& g = tier_of(handle).geometry();
    require(side == 0 || side == 1, "side is 0 for K or 1 for V");
    throw_if(tier::check(g, tokens / g.page_tokens));
    return tier::size_bytes(g, static_cast<tier::side>(side), tokens / g.page_tokens);
  });
}

std::int64_t kvarts_get_size_per_token(kvarts_tier const* handle) {
  return guarded<std::int64_t>(-1,
                               [&] { return tier::bytes_per_token(tier_of(handle).geometry()); });
}

std::int32_t kvarts_backup_from_device_all_layer(
    kvarts_tier const* handle, kvarts_host_pool const* host, std::uint64_t const* k_layers,
    std::uint64_t const* v_layers, std::int64_t device_tokens, std::int64_t const* host_indices,
    std::int64_t const* device_indices, std::int64_t count) {
  return guarded<std::int32_t>(-1, [&] {
    host_tier const& t = tier_of(handle);
    require(k_layers != nullptr && v_layers != nullptr, "a table of layers is null");
    tier::tier_view const to = view_of(t, host);
    std::vector<tier::source_layer> from;
    for (int layer = 0; layer < t.geometry().layers; ++layer) {
      auto const i = static_cast<std::size_t>(layer);
      from.push_back(
          t.plain(layer_memory<std::byte const>{address(k_layers, i), address(v_layers, i)}, layer,
                  device_tokens));
    }
    tier::layer_range const all{0, t.geometry().layers};
    auto const moves = moves_of(t, host_indices, device_indices, count);
    if (tier::encode_layers(to, from, all, moves).code != status::ok) {
      throw_if(tier::check_moves(to, std::span<tier::source_layer const>(from), all, moves, true));
    }
    return 0;
  });
}

std::int32_t kvarts_load_to_device_per_layer(kvarts_tier const* handle,
                                             kvarts_host_pool const* host, std::int32_t layer,
                                             void* k, void* v, std::int64_t device_tokens,
                                             std::int64_t const* host_indices,
                                             std::int64_t const* device_indices,
                                             std::int64_t count) {
  return guarded<std::int32_t>(-1, [&] {
    host_tier const& t = tier_of(handle);
    if (layer < 0 || layer >= t.geometry().layers) {
      throw_if({status::unsupported, "there is no layer {} among {}", layer, t.geometry().layers});
    }
    tier::const_tier_view const from = view_of(t, host);
    layer_memory<std::byte> const memory{static_cast<std::byte*>(k), static_cast<std::byte*>(v)};
    std::array const to{t.plain(memory, layer, device_tokens)};
    tier::layer_range const one{layer, layer + 1};
    auto const moves = moves_of(t, device_indices, host_indices, count);
    if (tier::decode_layers(from, to, one, moves) != status::ok) {
      throw_if(tier::check_moves(from, std::span<tier::target_layer const>(to), one, moves, false));
    }
    return 0;
  });
}
