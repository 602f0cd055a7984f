// SPDX-License-Identifier: Apache-2.0
// expect: this quantizer takes arrays only: the device needs quantize(group)
#include <kvarts/kernels/encode.cuh>

struct sign {
  using parameters_type = kvarts::parameters<kvarts::half>;
  static constexpr int bits = 1;
  static constexpr bool has_zero = false;
  static constexpr bool clamps_rows = false;
  static constexpr std::uint8_t stored_mask = 0;
  static constexpr std::string_view name() { return "sign"; }
  static parameters_type quantize(float const* x, int n, std::uint8_t* codes) {
    for (int i = 0; i < n; ++i) codes[i] = x[i] < 0.0f ? 0 : 1;
    return {kvarts::half(1.0f), {}};
  }
  static constexpr kvarts::decoding decode_with(parameters_type const& p) {
    return {p.scale, 0.0f};
  }
  static constexpr float level(std::uint8_t u, parameters_type const&, int) { return u; }
};

int main() {
  kvarts::view<kvarts::row_codec<sign>> const codes;
  return kvarts::cuda::encode(codes, {}, {}, {}, nullptr, nullptr);
}
