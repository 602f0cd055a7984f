// SPDX-License-Identifier: Apache-2.0
// A codec of your own: one type. Layouts, encode, decode and the products on codes take it as they
// take the shipped ones. This one stores the sign and the mean magnitude of each group (1 bit a
// number).

#include <kvarts/kvarts.hpp>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

// [codec]
struct sign_quantizer {
  using parameters_type = kvarts::parameters<kvarts::half>;
  static constexpr int bits = 1;
  static constexpr bool has_zero = false;         // no zero-point is stored
  static constexpr bool clamps_rows = false;      // it takes groups of any range
  static constexpr std::uint8_t stored_mask = 0;  // codes are stored as they are

  static constexpr std::string_view name() { return "sign"; }

  static parameters_type quantize(float const* x, int n, std::uint8_t* codes) {
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) {
      codes[i] = x[i] < 0.0f ? 0 : 1;
      sum += std::fabs(x[i]);
    }
    return {kvarts::saturate<kvarts::half>(sum / static_cast<float>(n)), {}};
  }
  static kvarts::decoding decode_with(parameters_type const& p) { return {p.scale, 0.0f}; }
  static float level(std::uint8_t u, parameters_type const&, int) { return u == 0 ? -1.0f : 1.0f; }
};

using value_codec = kvarts::codec<sign_quantizer, kvarts::axis::token, 32>;
// [codec]

int main() {
  constexpr int tokens = 96, heads = 2, head_dim = 80;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<kvarts::half> values(tokens * heads * head_dim);
  for (auto& v : values) v = kvarts::half(normal(random));

  auto const map = kvarts::make_head_tiles<value_codec>(heads, head_dim, tokens);
  std::vector<std::byte> memory(static_cast<std::size_t>(map.size_bytes()));
  kvarts::view<value_codec> const codes{memory.data(), map, {}};
  auto const source = kvarts::make_tensor(std::as_const(values).data(), heads, head_dim, tokens);
  auto const encoded = kvarts::encode(codes, source, {0, tokens});

  std::vector<float> const weights(heads * tokens, 1.0f / tokens);
  std::vector<float> output(heads * head_dim);
  auto const product = kvarts::gemv_pv(codes, {0, tokens}, heads, weights.data(), output.data());
  std::printf("%s: %.2f bits a number, mean of channel 0 is %.3f\n",
              std::string(value_codec::name()).c_str(), map.effective_bits(), output[0]);
  bool const ok = encoded.code == kvarts::status::ok && product == kvarts::status::ok;
  return ok && map.effective_bits() == 1.5 ? 0 : 1;
}
