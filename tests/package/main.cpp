// SPDX-License-Identifier: Apache-2.0
// The program of all consumer projects here: it uses the installed library as an engine would.
#include <kvarts/kvarts.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  constexpr int tokens = 40, heads = 2, head_dim = 64;
  using codec = kvarts::row_codec<kvarts::int8_head>;
  std::vector<float> keys(tokens * heads * head_dim);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = std::sin(static_cast<float>(i));

  auto const map = kvarts::make_row_records<codec>(heads, head_dim, tokens, 16);
  std::vector<std::byte> memory(static_cast<std::size_t>(map.size_bytes()));
  kvarts::view<codec> const codes{memory.data(), map, {}};
  float const* const plain = keys.data();
  auto const rows = kvarts::make_tensor(plain, heads, head_dim, tokens);
  auto const encoded = kvarts::encode(codes, rows, {0, tokens});

  std::vector<float> scores(heads * tokens);
  auto const product =
      kvarts::gemv_qk(codes, {0, tokens}, heads, keys.data(), nullptr, scores.data());
  double exact = 0.0;  // of token 0 of head 0 with itself
  for (int d = 0; d < head_dim; ++d) exact += double{keys[d]} * keys[d];
  std::printf("kvarts %d.%d.%d: %zu bytes, score %.3f of %.3f\n", KVARTS_VERSION_MAJOR,
              KVARTS_VERSION_MINOR, KVARTS_VERSION_PATCH, memory.size(), scores[0], exact);
  bool const ok = encoded.code == kvarts::status::ok && product == kvarts::status::ok &&
                  kvarts::numerics_ok() && memory.size() == tokens * 144;
  return ok && std::fabs(scores[0] - exact) < 0.01 * exact ? 0 : 1;
}
