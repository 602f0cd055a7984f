// SPDX-License-Identifier: Apache-2.0
/// @file
/// Every shipped quantizer behind plain functions, so that a test of all of them is a loop.
#pragma once

#include <kvarts/quantizer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::test {

/// A coded group as bits, and what they stand for.
struct quantized {
  std::vector<int> codes;
  std::uint16_t scale = 0;
  std::uint16_t zero = 0;
  float step = 0.0f;  ///< the scale as decoders use it
  std::vector<float> back;
};

template <class Quantizer>
quantized quantize_with(std::vector<float> const& x) {
  auto const n = static_cast<int>(x.size());
  std::vector<std::uint8_t> codes(x.size());
  auto const p = Quantizer::quantize(x.data(), n, codes.data());
  decoding const with = Quantizer::decode_with(p);
  quantized q{{codes.begin(), codes.end()}, p.scale.bits, p.zero.bits, with.scale, {}};
  for (std::uint8_t const u : codes) {
    q.back.push_back(with.scale * Quantizer::level(u, p, n) + with.zero);
  }
  return q;
}

struct any_quantizer {
  std::string name;
  int bits = 0;
  bool clamps_rows = false;
  quantized (*quantize)(std::vector<float> const& x) = nullptr;

  bool is(std::string_view part) const { return name.find(part) != std::string::npos; }
};

/// Those that need no more than the numbers: not TurboQuant's, whose scale is the length of a row
/// before its rotation.
std::vector<any_quantizer> const& all_quantizers();

}  // namespace kvarts::test
