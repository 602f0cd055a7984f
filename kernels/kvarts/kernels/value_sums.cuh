// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a warp sums up of coded values: V^T codes are operand A with 16 channels as rows, weights
/// of query heads the columns of operand B, and the sums stay in registers through all tokens.
#pragma once

#include <kvarts/kernels/fields.cuh>
#include <kvarts/kernels/weights.cuh>

namespace kvarts::kernels {

/// Sums of one warp: 16 channels a step, 8 columns a tile.
template <class Format, int HeadDim, int Block, int Tiles>
struct value_sums {
  using fields = fields_of<Format>;
  static constexpr int steps = HeadDim / 16;
  static constexpr int pairs = Block / 8;
  static constexpr int words = lane_words<Format::bits, HeadDim, Block>;
  static constexpr int groups = channel_parts<Format, HeadDim>;
  static constexpr float inverse_unit = 1.0f / fields::unit;

  float sums[Tiles][steps][4] = {};
  float ones[Tiles][4] = {};        ///< rows: sums of the weights as rounded, for each column
  float zeros[Tiles][groups] = {};  ///< channel groups: what zero-points add, of column g
  power_scale scales[Tiles];

  KVARTS_DEVICE value_sums() {
    unrolled<Tiles>([&](auto t) { scales[t] = first_weight_scale(); });
  }

  KVARTS_DEVICE void rescale(int t, float column_ratio, float_pair ratio) {
    unrolled<4>([&](auto i) {
      float const factor = i % 2 == 0 ? ratio.low : ratio.high;
      unrolled<steps>([&](auto s) { sums[t][s][i] *= factor; });
      ones[t][i] *= factor;
    });
    if constexpr (Format::along == axis::channel && !Format::has_zero) {
      unrolled<groups>([&](auto g) { zeros[t][g] *= column_ratio; });
    }
  }

  KVARTS_DEVICE void fit(block_weights<Block, Tiles> const& weights, int r) {
    float largest[Tiles];
    unrolled<Tiles>([&](auto t) { largest[t] = weights.largest(t); });
    fit_scales(largest, scales, r, [&](auto t, float column_ratio, float_pair ratio) {
      rescale(t, column_ratio, ratio);
    });
  }

  /// `to` = `from` plus codes of 16 channels times weights.
  template <int Step>
  KVARTS_DEVICE static void multiply(std::uint32_t const* codes, std::uint32_t const* table,
                                     std::uint32_t const (&weights)[Tiles][pairs],
                                     float const (&from)[Tiles][4], float (&to)[Tiles][4]) {
    unrolled<pairs / 2>([&](auto j) {
      constexpr int field = Step * pairs + 2 * j;
      std::uint32_t a[4];
      fields::template decode<field>(codes, table, a[0], a[1]);
      fields::template decode<field + 1>(codes, table, a[2], a[3]);
      unrolled<Tiles>([&](auto t) {
        std::uint32_t const b[2] = {
            scaled_operand<fields::factor_log2(field)>(weights[t][2 * j]),
            scaled_operand<fields::factor_log2(field + 1)>(weights[t][2 * j + 1])};
        if constexpr (j == 0) {
          mma_f16(to[t], a, b, from[t]);
        } else {
          mma_f16(to[t], a, b);
        }
      });
    });
  }

  /// The same, onto the sums of a step.
  template <int Step>
  KVARTS_DEVICE static void multiply_into(std::uint32_t const* codes, std::uint32_t const* table,
                                          std::uint32_t const (&weights)[Tiles][pairs],
                                          float (&all)[Tiles][steps][4]) {
    float from[Tiles][4], to[Tiles][4];
    unrolled<Tiles>([&](auto t) { unrolled<4>([&](auto i) { from[t][i] = all[t][Step][i]; }); });
    multiply<Step>(codes, table, weights, from, to);
    unrolled<Tiles>([&](auto t) { unrolled<4>([&](auto i) { all[t][Step][i] = to[t][i]; }); });
  }

  /// `to` += sums of the weights, in every row.
  KVARTS_DEVICE static void add_ones(std::uint32_t const (&weights)[Tiles][pairs],
                                     float (&to)[Tiles][4]) {
    constexpr std::uint32_t a[4] = {0x3C003C00u, 0x3C003C00u, 0x3C003C00u, 0x3C003C00u};
    unrolled<pairs / 2>([&](auto j) {
      unrolled<Tiles>([&](auto t) {
        std::uint32_t const b[2] = {weights[t][2 * j], weights[t][2 * j + 1]};
        mma_f16(to[t], a, b);
      });
    });
  }

  /// One scale a token: it multiplies the token's weights.
  KVARTS_DEVICE void add_rows(tile_place const& tile, std::uint32_t const* codes,
                              std::uint32_t const* table, block_weights<Block, Tiles>& weights,
                              token_span span, std::int64_t first_token, float lowest, int r) {
    group_values groups_of[pairs][2];
    load_token_groups<Format, Block>(
        tile, span, first_token, lowest, r, [](std::int64_t slot) { return slot; }, groups_of);
    unrolled<Tiles>([&](auto t) {
      unrolled<pairs>([&](auto pair) {
        unrolled<2>([&](auto i) { weights.values[t][pair][i] *= groups_of[pair][i].scale; });
      });
    });
    fit(weights, r);
    std::uint32_t operand[Tiles][pairs];
    weights.pack(scales, operand);
    if constexpr (Format::level_kind == levels::uniform) add_ones(operand, ones);
    unrolled<steps>([&](auto s) { multiply_into<s>(codes, table, operand, sums); });
  }

  /// Scales of channels, shared by the block's tokens, multiply the block's sums: group 0 of the
  /// tile, one scale for each channel.
  KVARTS_DEVICE static void multiply_groups(tile_place const& tile, std::uint32_t const* codes,
                                            std::uint32_t const (&weights)[Tiles][pairs], int g,
                                            float lowest, float (&all_sums)[Tiles][steps][4]) {
    float all[Tiles][4] = {};
    add_ones(weights, all);
    std::int64_t const first = static_cast<std::uint32_t>(g);
    float start[Tiles][4];
    unrolled<Tiles>([&](auto t) {
      unrolled<4>([&](auto i) {
        start[t][i] = Format::has_zero ? 0.0f : all[t][i] * (lowest * inverse_unit);
      });
    });
    unrolled<steps>([&](auto s) {
      float part[Tiles][4];
      multiply<s>(codes, nullptr, weights, start, part);
      unrolled<2>([&](auto row) {
        group_values const v = load_group<Format>(tile, first + (16 * s + 8 * row), lowest);
        unrolled<Tiles>([&](auto t) {
          unrolled<2>([&](auto column) {
            constexpr int at = 2 * row + column;
            float& sum = all_sums[t][s][at];
            sum = fused(part[t][at], v.scale, sum);
            if constexpr (Format::has_zero) sum = fused(all[t][at], v.zero * inverse_unit, sum);
          });
        });
      });
    });
  }

  KVARTS_DEVICE void add_token_groups(tile_place tile, std::uint32_t const* codes,
                                      block_weights<Block, Tiles> const& weights,
                                      std::uint32_t group, float lowest, lane_place lane) {
    fit(weights, lane.r);
    std::uint32_t operand[Tiles][pairs];
    weights.pack(scales, operand);
    std::uint32_t const first = group * HeadDim;
    tile.scales += first * std::uint32_t{sizeof(typename Format::scale_type)};
    tile.zeros += first * 2;
    multiply_groups(tile, codes, operand, lane.g, lowest, sums);
  }

  /// Scales of a token's groups of channels: they multiply its weights, group by group.
  KVARTS_DEVICE void add_channel_groups(tile_place const& tile, std::uint32_t const* codes,
                                        block_weights<Block, Tiles> const& weights, token_span span,
                                        std::int64_t first_token, float lowest, int r) {
    constexpr int group_steps = Format::group / 16;
    unrolled<groups>([&](auto group) {
      group_values v[pairs][2];
      load_token_groups<Format, Block>(
          tile, span, first_token, lowest, r,
          [=](std::int64_t slot) { return slot * groups + group; }, v);
      block_weights<Block, Tiles> scaled;
      unrolled<Tiles>([&](auto t) {
        unrolled<pairs>([&](auto pair) {
          unrolled<2>([&](auto i) {
            float const weight = weights.values[t][pair][i];
            scaled.values[t][pair][i] = weight * v[pair][i].scale;
            if constexpr (Format::has_zero) {
              zeros[t][group] = fused(weight, v[pair][i].zero, zeros[t][group]);
            }
          });
        });
      });
      fit(scaled, r);
      std::uint32_t operand[Tiles][pairs];
      scaled.pack(scales, operand);
      if constexpr (!Format::has_zero) {
        unrolled<Tiles>([&](auto t) {
          unrolled<pairs>([&](auto pair) {
            float_pair const p = unpack_half2(operand[t][pair]);
            zeros[t][group] += p.low + p.high;
          });
        });
      }
      unrolled<group_steps>([&](auto i) {
        constexpr int s = group * group_steps + i;
        if constexpr (s < steps) multiply_into<s>(codes, nullptr, operand, sums);
      });
    });
  }

  /// Writes the warp's sums, `[8 * Tiles, HeadDim]`.
  KVARTS_DEVICE void store(float* to, float lowest, lane_place lane) const {
    unrolled<Tiles>([&](auto t) {
      float_pair const inverse = sums_columns(scales[t].inverse, lane.r);
      unrolled<groups>([&](auto group) {
        float_pair zero{0.0f, 0.0f};
        if constexpr (Format::along == axis::channel) {
          float const factor = Format::has_zero ? 1.0f : lowest * scales[t].inverse;
          zero = sums_columns(column_sum(zeros[t][group]) * factor, lane.r);
        } else if constexpr (Format::along == axis::row && Format::level_kind == levels::uniform) {
          zero = {lowest * ones[t][0] * inverse.low, lowest * ones[t][1] * inverse.high};
        }
        constexpr int group_steps = Format::along == axis::channel ? Format::group / 16 : steps;
        unrolled<group_steps>([&](auto i) {
          constexpr int s = group * group_steps + i;
          if constexpr (s < steps) {
            unrolled<4>([&](auto k) {
              int const channel = 16 * s + lane.g + k / 2 * 8;
              int const column = 8 * t + 2 * lane.r + k % 2;
              float const scale = (k % 2 == 0 ? inverse.low : inverse.high) * fields::unit;
              to[column * HeadDim + channel] =
                  fused(sums[t][s][k], scale, k % 2 == 0 ? zero.low : zero.high);
            });
          }
        });
      });
    });
  }
};

}  // namespace kvarts::kernels
