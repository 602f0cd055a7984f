// SPDX-License-Identifier: Apache-2.0
/// @file
/// Sums of a block's values by the weights of online softmax, of codes and of plain rows. Weights
/// come as the sums of q.K^T lie in registers and are transposed into the small operand.
#pragma once

#include <kvarts/kernels/attention_keys.cuh>
#include <kvarts/kernels/value_sums.cuh>

namespace kvarts::kernels {

/// Weights as halfs of one operand register for each 8 tokens of a block.
template <int Halves, int Tiles>
KVARTS_DEVICE void transpose_weights(float const (&weights)[Halves][Tiles][4],
                                     std::uint32_t (&words)[Tiles][2 * Halves]) {
  unrolled<Tiles>([&](auto t) {
    unrolled<2 * Halves>([&](auto pair) {
      float const* const w = weights[pair / 2][t] + pair % 2 * 2;
      words[t][pair] = transpose_8x8(pack_half2(w[0], w[1]));
    });
  });
}

/// Coded values. `scale` keeps the products of weights and scales of tokens within halfs; it only
/// shrinks.
template <class Shape>
struct coded_values {
  using format = typename Shape::value_format;
  using products = value_sums<format, Shape::value_dim, Shape::block, Shape::tiles>;
  using fields = fields_of<format>;
  static constexpr int halves = Shape::block / 16;
  static constexpr int steps = Shape::value_dim / 16;
  static constexpr int tiles = Shape::tiles;
  static constexpr bool scales_weights = format::along != axis::token;
  static constexpr int groups = products::groups;

  float sums[tiles][steps][4] = {};
  float ones[tiles][4] = {};           ///< rows: sums of the weights as rounded
  float zeros[tiles][groups][2] = {};  ///< channel groups: what zero-points add
  power_scale scale = first_weight_scale();
  group_values of_tokens[groups][halves][2];  ///< of the block

  /// Reads the scales of the lane's tokens.
  KVARTS_DEVICE void load_scales(std::byte const* stage, float lowest, int g) {
    if constexpr (!scales_weights) return;
    tile_place const tile = staged_tile<format, Shape::value_dim, Shape::block>(stage);
    unrolled<halves>([&](auto h) {
      unrolled<2>([&](auto i) {
        unrolled<groups>([&](auto group) {
          std::int64_t const index = (16 * h + 8 * i + g) * groups + group;
          of_tokens[group][h][i] = load_group<format>(tile, index, lowest);
        });
      });
    });
  }

  /// Tokens outside the segment get zeros, whatever is stored there.
  KVARTS_DEVICE void hide_tokens(std::int32_t first_token, segment_work const& w, int g) {
    if constexpr (!scales_weights) return;
    unrolled<halves>([&](auto h) {
      unrolled<2>([&](auto i) {
        std::int32_t const token = first_token + 16 * h + 8 * i + g;
        bool const inside = w.has(token);
        unrolled<groups>([&](auto group) {
          group_values& v = of_tokens[group][h][i];
          v = inside ? v : group_values{0.0f, 0.0f};
        });
      });
    });
  }

  /// True where a scale is too large for `scale`.
  KVARTS_DEVICE bool exceeds() {
    bool over = false;
    if constexpr (scales_weights) {
      for_each_scale([&](group_values const& v) { over |= magnitude(v.scale) > scale.inverse; });
    }
    return over;
  }

  /// Brings `scale` down to the largest of the block.
  KVARTS_DEVICE void fit() {
    if constexpr (!scales_weights) return;
    float most = 0.0f;
    for_each_scale([&](group_values const& v) { most = larger(most, magnitude(v.scale)); });
    most = rows_max(most);
    if (!(most > scale.inverse)) return;
    power_scale const next = scale_to(most, -1);
    float const ratio = next.factor * scale.inverse;
    scale = next;
    unrolled<tiles>([&](auto t) {
      unrolled<4>([&](auto i) {
        unrolled<steps>([&](auto s) { sums[t][s][i] *= ratio; });
        ones[t][i] *= ratio;
      });
      if constexpr (!format::has_zero) {
        unrolled<groups>([&](auto group) {
          zeros[t][group][0] *= ratio;
          zeros[t][group][1] *= ratio;
        });
      }
    });
  }

  KVARTS_DEVICE void rescale(int t, float_pair factors) {
    unrolled<4>([&](auto i) {
      float const factor = i % 2 == 0 ? factors.low : factors.high;
      unrolled<steps>([&](auto s) { sums[t][s][i] *= factor; });
      ones[t][i] *= factor;
    });
    unrolled<groups>([&](auto group) {
      zeros[t][group][0] *= factors.low;
      zeros[t][group][1] *= factors.high;
    });
  }

  /// Adds the values of a staged block.
  KVARTS_DEVICE void add(std::byte const* stage, std::uint32_t const* table, float lowest,
                         lane_place lane, float const (&weights)[halves][tiles][4]) {
    std::uint32_t codes[products::words];
    load_staged_words(stage, lane.lane, codes);
    if constexpr (format::along == axis::token) {
      add_token_groups(staged_tile<format, Shape::value_dim, Shape::block>(stage), codes, lowest,
                       lane, weights);
    } else {
      unrolled<groups>([&](auto group) { add_scaled<group>(codes, table, weights); });
    }
  }

  /// Sums become those of the values themselves.
  KVARTS_DEVICE void finish(float lowest) {
    float const unit = fields::unit * scale_of_sums();
    unrolled<tiles>([&](auto t) {
      unrolled<groups>([&](auto group) {
        float zero[2] = {};
        unrolled<2>([&](auto c) {
          if constexpr (format::along == axis::channel) {
            float const factor = format::has_zero ? 1.0f : lowest * scale.inverse;
            zero[c] = rows_sum(zeros[t][group][c]) * factor;
          } else if constexpr (format::along == axis::row &&
                               format::level_kind == levels::uniform) {
            zero[c] = ones[t][c] * (lowest * scale.inverse);
          }
        });
        constexpr int group_steps = format::along == axis::channel ? format::group / 16 : steps;
        unrolled<group_steps>([&](auto i) {
          constexpr int s = group * group_steps + i;
          if constexpr (s < steps) {
            unrolled<4>([&](auto k) { sums[t][s][k] = fused(sums[t][s][k], unit, zero[k % 2]); });
          }
        });
      });
    });
  }

  /// Calls `f(channel, sum)` for the lane's sums of a column.
  template <int Tile, int Column, class F>
  KVARTS_DEVICE void for_each(lane_place lane, F&& f) const {
    unrolled<steps>([&](auto s) {
      unrolled<2>([&](auto i) { f(16 * s + 8 * i + lane.g, sums[Tile][s][2 * i + Column]); });
    });
  }

 private:
  KVARTS_DEVICE float scale_of_sums() const { return scales_weights ? scale.inverse : 1.0f; }

  template <class F>
  KVARTS_DEVICE void for_each_scale(F&& f) {
    unrolled<groups>([&](auto group) {
      unrolled<halves>([&](auto h) { unrolled<2>([&](auto i) { f(of_tokens[group][h][i]); }); });
    });
  }

  /// Channels of one group (rows: all), by weights times the scales of its tokens.
  template <int Group>
  KVARTS_DEVICE void add_scaled(std::uint32_t const* codes, std::uint32_t const* table,
                                float const (&weights)[halves][tiles][4]) {
    float scaled[halves][tiles][4];
    unrolled<halves>([&](auto h) {
      unrolled<tiles>([&](auto t) {
        unrolled<4>([&](auto i) {
          group_values const& v = of_tokens[Group][h][i / 2];
          scaled[h][t][i] = weights[h][t][i] * (v.scale * scale.factor);
          if constexpr (format::has_zero) {
            zeros[t][Group][i % 2] = fused(weights[h][t][i], v.zero, zeros[t][Group][i % 2]);
          } else if constexpr (format::along == axis::channel) {
            float const rounded = unpack_half2(pack_half2(scaled[h][t][i], 0.0f)).low;
            zeros[t][Group][i % 2] += rounded;
          }
        });
      });
    });
    std::uint32_t operand[tiles][2 * halves];
    transpose_weights(scaled, operand);
    if constexpr (format::along == axis::row && format::level_kind == levels::uniform) {
      products::add_ones(operand, ones);
    }
    constexpr int group_steps = format::along == axis::channel ? format::group / 16 : steps;
    unrolled<group_steps>([&](auto i) {
      constexpr int s = Group * group_steps + i;
      if constexpr (s < steps) products::template multiply_into<s>(codes, table, operand, sums);
    });
  }

  KVARTS_DEVICE void add_token_groups(tile_place const& tile, std::uint32_t const* codes,
                                      float lowest, lane_place lane,
                                      float const (&weights)[halves][tiles][4]) {
    std::uint32_t operand[tiles][2 * halves];
    transpose_weights(weights, operand);
    products::multiply_groups(tile, codes, operand, lane.g, lowest, sums);
  }
};

/// Plain values, of windows or of a plain codec.
template <class Shape, bool Coded>
struct plain_values {
  using value = row_type<typename Shape::value_format, Shape, Coded>;
  static constexpr int halves = Shape::block / 16;
  static constexpr int steps = Shape::value_dim / 16;
  static constexpr int tiles = Shape::tiles;

  float sums[tiles][steps][4] = {};

  KVARTS_DEVICE void rescale(int t, float_pair factors) {
    unrolled<4>([&](auto i) {
      float const factor = i % 2 == 0 ? factors.low : factors.high;
      unrolled<steps>([&](auto s) { sums[t][s][i] *= factor; });
    });
  }

  /// Adds the values of the block at `first_token`.
  template <bool Sinks>
  KVARTS_DEVICE void add(attention_arguments const& a, attention_shared<Shape> const& shared,
                         segment_work const& w, std::int32_t first_token, lane_place lane,
                         float const (&weights)[halves][tiles][4]) {
    with_rows<Sinks, Coded>(a.values, a.value_windows, shared.piece, w, first_token,
                            Shape::value_dim * 2, [&](auto const& find) {
                              unrolled<halves>([&](auto h) {
                                value_rows<Shape::value_dim> rows;
                                unrolled<4>([&](auto i) {
                                  std::int32_t const token =
                                      first_token + 16 * h + i / 2 * 8 + 2 * lane.r + i % 2;
                                  rows.template load<i>(find(token), lane.g);
                                });
                                add_half(rows, weights[h]);
                              });
                            });
  }

  KVARTS_DEVICE void finish(float) {}

  /// Calls `f(channel, sum)` for the lane's sums of a column.
  template <int Tile, int Column, class F>
  KVARTS_DEVICE void for_each(lane_place lane, F&& f) const {
    unrolled<steps>([&](auto s) {
      unrolled<2>([&](auto i) {
        constexpr int k = 2 * i + Column;
        f(value_rows<Shape::value_dim>::template channel<s, k>(lane.g), sums[Tile][s][k]);
      });
    });
  }

 private:
  KVARTS_DEVICE void add_half(value_rows<Shape::value_dim> const& rows,
                              float const (&weights)[tiles][4]) {
    small_pair<value> operand[tiles][2];
    unrolled<tiles>([&](auto t) {
      unrolled<2>([&](auto i) {
        operand[t][i].pack(weights[t][2 * i], weights[t][2 * i + 1]);
        unrolled<small_pair<value>::parts>([&](auto part) {
          operand[t][i].words[part] = transpose_8x8(operand[t][i].words[part]);
        });
      });
    });
    rows.multiply(operand, sums);
  }
};

}  // namespace kvarts::kernels
