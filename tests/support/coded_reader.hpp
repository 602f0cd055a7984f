// SPDX-License-Identifier: Apache-2.0
/// @file
/// A second reader of coded memory, in float64, from the formats' text alone: it shares no layout,
/// packing or quantizer code with the library. Linear packing; row records and head tiles.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kvarts::test {

enum class arrangement { row_records, head_tiles };
enum class parameter_axis { row, channel, token };

/// What a file header would say.
struct coded_format {
  std::string_view name;  ///< "symmetric3_narrow", ...
  int bits = 0;
  parameter_axis along = parameter_axis::row;
  arrangement arranged = arrangement::row_records;
  int heads = 0;
  int head_dim = 0;
  int group = 0;
  int tile_tokens = 1;
  int alignment = 1;
  std::int64_t tokens = 0;  ///< room
};

class coded_reader {
 public:
  coded_reader(coded_format const& f, std::byte const* data) : f_(f), data_(data) {}

  double value(int head, std::int64_t token, int channel) const {
    std::int64_t const tile = token / f_.tile_tokens;
    int const slot = static_cast<int>(token % f_.tile_tokens);
    std::int64_t const index = std::int64_t{slot} * f_.head_dim + channel;
    unsigned const raw = read_bits(codes_at(head, tile) * 8 + index * f_.bits);
    if (f_.name == "f16") return half_value(raw);
    if (f_.name == "bf16") return bfloat16_value(raw);
    std::int64_t const group = group_index(slot, channel);
    std::int64_t const scales = scales_at(head, tile);
    std::int64_t const zeros = scales + groups_of_tile() * scale_bytes() * zero_distance();
    unsigned const zero = has_zero() ? read_16(zeros + 2 * group) : 0;
    return dequantize(raw, scales + scale_bytes() * group, zero);
  }

 private:
  bool is(std::string_view part) const { return f_.name.find(part) != std::string_view::npos; }
  bool has_zero() const { return is("affine") || is("hybrid"); }
  int scale_bytes() const { return is("codebook") && is("f32") ? 4 : 2; }
  bool plain() const { return f_.name == "f16" || f_.name == "bf16"; }

  static std::int64_t rounded_up(std::int64_t n, std::int64_t step) {
    return (n + step - 1) / step * step;
  }
  int groups_of_row() const {
    return f_.along == parameter_axis::channel ? (f_.head_dim + f_.group - 1) / f_.group : 1;
  }
  std::int64_t groups_of_tile() const {
    if (plain()) return 0;
    if (f_.along == parameter_axis::token) {
      return std::int64_t{f_.tile_tokens / f_.group} * f_.head_dim;
    }
    return std::int64_t{f_.tile_tokens} * groups_of_row();
  }
  std::int64_t group_index(int slot, int channel) const {
    if (f_.along == parameter_axis::token) return slot / f_.group * f_.head_dim + channel;
    if (f_.along == parameter_axis::row) return slot;
    return slot * groups_of_row() + channel / f_.group;
  }

  std::int64_t code_bytes() const {
    return (std::int64_t{f_.tile_tokens} * f_.head_dim * f_.bits + 7) / 8;
  }
  std::int64_t parameter_bytes() const {
    return groups_of_tile() * (scale_bytes() + (has_zero() ? 2 : 0));
  }
  std::int64_t record_bytes() const {
    return rounded_up(f_.heads * (code_bytes() + parameter_bytes()), f_.alignment);
  }
  /// Group codecs keep parameters with their codes; the scales of row codecs lie behind all tiles.
  std::int64_t tile_bytes() const {
    bool const together = f_.along != parameter_axis::row;
    return rounded_up(code_bytes() + (together ? parameter_bytes() : 0), f_.alignment);
  }
  std::int64_t tiles() const { return (f_.tokens + f_.tile_tokens - 1) / f_.tile_tokens; }

  std::int64_t codes_at(int head, std::int64_t tile) const {
    if (f_.arranged == arrangement::row_records) return tile * record_bytes() + head * code_bytes();
    return (head * tiles() + tile) * tile_bytes();
  }
  std::int64_t scales_at(int head, std::int64_t tile) const {
    if (f_.arranged == arrangement::row_records) {
      std::int64_t const record = tile * record_bytes() + f_.heads * code_bytes();
      return record + head * groups_of_tile() * scale_bytes();
    }
    if (f_.along != parameter_axis::row) return codes_at(head, tile) + code_bytes();
    std::int64_t const behind = f_.heads * tiles() * tile_bytes();
    return behind + (head * tiles() + tile) * parameter_bytes();
  }
  /// Zero-points follow the scales: of all heads in a record, of the tile in a tile.
  int zero_distance() const { return f_.arranged == arrangement::row_records ? f_.heads : 1; }

  unsigned read_bits(std::int64_t first) const {
    unsigned code = 0;
    for (int k = 0; k < f_.bits; ++k) {
      auto const byte = std::to_integer<unsigned>(data_[(first + k) / 8]);
      code |= ((byte >> ((first + k) % 8)) & 1u) << k;
    }
    return code;
  }
  unsigned read_16(std::int64_t at) const {
    return std::to_integer<unsigned>(data_[at]) | std::to_integer<unsigned>(data_[at + 1]) << 8;
  }

  static double with_sign(unsigned bits, double magnitude) {
    return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
  }
  static double half_value(unsigned bits) {
    int const exponent = static_cast<int>((bits >> 10) & 31u);
    double const fraction = (bits & 0x3FFu) / 1024.0;
    if (exponent == 0) return with_sign(bits, std::ldexp(fraction, -14));
    return with_sign(bits, std::ldexp(1.0 + fraction, exponent - 15));
  }
  static double bfloat16_value(unsigned bits) { return binary32_value(bits << 16); }
  static double binary32_value(unsigned bits) {
    int const exponent = static_cast<int>((bits >> 23) & 255u);
    double const fraction = (bits & 0x7FFFFFu) / 8388608.0;
    double const magnitude =
        exponent == 0 ? std::ldexp(fraction, -126) : std::ldexp(1.0 + fraction, exponent - 127);
    return with_sign(bits >> 16, magnitude);
  }

  double dequantize(unsigned u, std::int64_t scale_at, unsigned zero) const {
    unsigned const s = read_16(scale_at);
    if (is("int8_head")) return bfloat16_value(s) * (u < 128 ? u : u - 256.0);
    if (is("midrise")) return half_value(s) * (u - ((1 << f_.bits) - 1) / 2.0);
    if (is("codebook")) return codebook_value(u, scale_at);
    bool const affine = is("affine") || (is("hybrid") && (s & 0x8000u) != 0);
    if (affine) return std::fabs(half_value(s)) * u + half_value(zero);
    int const lowest = is("narrow") ? 1 - (1 << (f_.bits - 1)) : -(1 << (f_.bits - 1));
    return half_value(s) * (static_cast<int>(u) + lowest);
  }

  double codebook_value(unsigned u, std::int64_t scale_at) const {
    static std::vector<double> const upper[] = {{.45278003, 1.51041761},
                                                {.24509418, .75600528, 1.34390928, 2.15194570},
                                                {.12839503, .38804830, .65675912, .94234046,
                                                 1.25623120, 1.61804639, 2.06901723, 2.73258957}};
    auto const& levels = upper[f_.bits - 2];
    std::size_t const half_count = levels.size();
    double const c = u >= half_count ? levels[u - half_count] : -levels[half_count - 1 - u];
    unsigned const low = read_16(scale_at);
    double const r =
        scale_bytes() == 2 ? half_value(low) : binary32_value(read_16(scale_at + 2) << 16 | low);
    return r * c / std::sqrt(static_cast<double>(f_.head_dim));
  }

  coded_format f_;
  std::byte const* data_;
};

}  // namespace kvarts::test
