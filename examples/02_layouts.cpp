// SPDX-License-Identifier: Apache-2.0
// One codec, three places to put its bytes: row records, head tiles, and pages through a block
// table.

#include <kvarts/kvarts.hpp>

#include <cstdio>
#include <random>
#include <vector>

namespace {

constexpr int tokens = 100, heads = 8, head_dim = 128;
using key_codec = kvarts::row_codec<kvarts::int8_head>;

/// Encodes all tokens into memory of this layout and decodes them.
std::vector<float> through(kvarts::layout const& map, kvarts::block_table table,
                           std::vector<kvarts::bfloat16> const& keys) {
  std::vector<std::byte> memory(static_cast<std::size_t>(map.size_bytes()));
  kvarts::view<key_codec> const codes{memory.data(), map, table};
  auto const source = kvarts::make_tensor(keys.data(), heads, head_dim, tokens);
  std::vector<float> decoded(keys.size());
  auto const target = kvarts::make_tensor(decoded.data(), heads, head_dim, tokens);
  if (encode(codes, source, {0, tokens}).code != kvarts::status::ok) return {};
  if (decode(codes, target, {0, tokens}) != kvarts::status::ok) return {};
  return decoded;
}

}  // namespace

int main() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<kvarts::bfloat16> keys(tokens * heads * head_dim);
  for (auto& k : keys) k = kvarts::bfloat16(normal(random));

  // [layouts]
  // A token's record holds all heads: [codes][scales][padding], here 1024 + 16 + 112 = 1152 bytes.
  auto const records = kvarts::make_row_records<key_codec>(heads, head_dim, tokens, 128);
  // A head's tiles of 32 tokens lie one after another, the scales in a plane of their own.
  auto const tiles = kvarts::make_head_tiles<key_codec>(heads, head_dim, tokens);
  // A pool of 9 pages of 16 tokens; token t is in page table[t / 16], slot t % 16.
  auto const pages = kvarts::make_pages<key_codec>(heads, head_dim, 9, 16);
  std::int32_t const table[] = {8, 0, 3, 1, 7, 2, 6};
  // [layouts]

  auto const a = through(records, {}, keys);
  auto const b = through(tiles, {}, keys);
  auto const c = through(pages, {table, 7}, keys);
  std::printf("row records: %lld bytes, %lld a token\n",
              static_cast<long long>(records.size_bytes()),
              static_cast<long long>(records.codes.tile_stride));
  std::printf("head tiles:  %lld bytes, %d tokens a tile\n",
              static_cast<long long>(tiles.size_bytes()), tiles.tile_tokens);
  std::printf("pages:       %lld bytes, %lld a page\n", static_cast<long long>(pages.size_bytes()),
              static_cast<long long>(pages.codes.page_stride));
  bool const same = !a.empty() && a == b && b == c;
  std::printf("all three decode to the same keys: %s\n", same ? "yes" : "no");
  return same ? 0 : 1;
}
