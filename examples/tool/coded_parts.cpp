// SPDX-License-Identifier: Apache-2.0
#include "coded_parts.hpp"

#include "npy.hpp"

#include <kvarts/bits.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace kvarts::tool {

namespace {

/// How far parameters lie apart: one per `token_step` tokens and `channel_step` channels.
struct parameter_grid {
  std::int64_t token_step = 1;
  int channel_step = 1;

  parameter_grid(codec_info const& info, layout const& map)
      : token_step(info.grouped_along == axis::token ? map.group : 1),
        channel_step(info.grouped_along == axis::row       ? map.head_dim
                     : info.grouped_along == axis::channel ? map.group
                                                           : 1) {}
};

using extents = std::vector<std::int64_t>;

extents without_heads(extents shape, bool heads_axis) {
  if (!heads_axis) shape.erase(shape.begin() + 1);
  return shape;
}

std::vector<std::uint8_t> all_codes(codec_ops const& codec, std::int64_t tokens,
                                    coded_source coded) {
  int const head_dim = coded.map.head_dim;
  std::vector<std::uint8_t> codes(
      static_cast<std::size_t>(tokens * coded.map.heads * std::int64_t{head_dim}));
  std::uint8_t* next = codes.data();
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int h = 0; h < coded.map.heads; ++h, next += head_dim) codec.load_codes(coded, h, t, next);
  }
  return codes;
}

/// Scales as 16-bit or 32-bit numbers, and zero-points beside them, in the order of tokens, heads,
/// channels.
template <class Scale>
std::pair<std::vector<Scale>, std::vector<std::uint16_t>> all_parameters(codec_ops const& codec,
                                                                         std::int64_t tokens,
                                                                         coded_source coded,
                                                                         parameter_grid grid) {
  std::pair<std::vector<Scale>, std::vector<std::uint16_t>> all;
  for (std::int64_t t = 0; t < tokens; t += grid.token_step) {
    for (int h = 0; h < coded.map.heads; ++h) {
      for (int d = 0; d < coded.map.head_dim; d += grid.channel_step) {
        auto const [scale, zero] = codec.load_parameters(coded, h, t, d);
        all.first.push_back(static_cast<Scale>(scale));
        all.second.push_back(zero);
      }
    }
  }
  return all;
}

/// How scales go into a file: the end of its name and its type.
struct scale_format {
  char const* suffix;
  file_dtype type;
};

scale_format format_of(kvt_scale_type scale) {
  switch (scale) {
    case kvt_scale_type::bf16: return {".scale_bf16.npy", file_dtype::u16};
    case kvt_scale_type::f32: return {".scale_f32.npy", file_dtype::f32};
    default: return {".scale_f16.npy", file_dtype::f16};
  }
}

template <class Scale>
void write_parameters(std::string const& prefix, codec_ops const& codec, kvt_header const& header,
                      coded_source coded, parameter_grid grid, extents const& shape) {
  auto const [scales, zeros] = all_parameters<Scale>(codec, header.tokens, coded, grid);
  auto const [suffix, type] = format_of(header.scale_type);
  write_npy(prefix + suffix, {type, shape, std::as_bytes(std::span(scales))});
  if (header.zero_points != 0) {
    write_npy(prefix + ".zero_f16.npy", {file_dtype::f16, shape, std::as_bytes(std::span(zeros))});
  }
}

}  // namespace

void write_parts(std::string const& prefix, codec_ops const& codec, kvt_header const& header,
                 coded_source coded, bool heads_axis) {
  codec_info const info = codec.info();
  layout const& map = coded.map;
  parameter_grid const grid(info, map);

  auto const codes = all_codes(codec, header.tokens, coded);
  write_npy(prefix + ".codes_u8.npy",
            {file_dtype::u8, without_heads({header.tokens, map.heads, map.head_dim}, heads_axis),
             std::as_bytes(std::span(codes))});

  extents shape = without_heads({ceil_div(header.tokens, grid.token_step), map.heads,
                                 ceil_div(map.head_dim, grid.channel_step)},
                                heads_axis);
  if (info.grouped_along == axis::row) shape.pop_back();
  if (header.scale_type == kvt_scale_type::f32) {
    write_parameters<std::uint32_t>(prefix, codec, header, coded, grid, shape);
  } else {
    write_parameters<std::uint16_t>(prefix, codec, header, coded, grid, shape);
  }
}

}  // namespace kvarts::tool
