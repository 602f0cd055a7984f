// SPDX-License-Identifier: Apache-2.0
// Encodes a layer of keys in 3.5 bits a number and decodes it again.

#include <kvarts/kvarts.hpp>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

int main() {
  constexpr int tokens = 256, heads = 2, head_dim = 128;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<kvarts::half> keys(tokens * heads * head_dim);
  for (auto& k : keys) k = kvarts::half(normal(random));

  // [round trip]
  using kvarts::axis, kvarts::codec, kvarts::range, kvarts::symmetric;
  using key_codec = codec<symmetric<3, range::searched>, axis::channel, 32>;

  auto const layout = kvarts::make_head_tiles<key_codec>(heads, head_dim, tokens);
  std::vector<std::byte> memory(static_cast<std::size_t>(layout.size_bytes()));
  kvarts::view<key_codec> codes{memory.data(), layout};
  auto const result = kvarts::encode(
      codes, kvarts::make_tensor(std::as_const(keys).data(), heads, head_dim, tokens), {0, tokens});

  std::vector<float> decoded(keys.size());
  kvarts::decode(codes, kvarts::make_tensor(decoded.data(), heads, head_dim, tokens), {0, tokens});
  // [round trip]

  double error = 0.0, square = 0.0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    double const x = keys[i];
    error += (decoded[i] - x) * (decoded[i] - x);
    square += x * x;
  }
  std::printf(
      "%s: %zu bytes of fp16 became %zu (%.2f bits a number), relative squared error %.4f\n",
      to_string(result.code), keys.size() * 2, memory.size(), layout.effective_bits(),
      error / square);
  return result.code == kvarts::status::ok && error / square < 0.04 ? 0 : 1;
}
