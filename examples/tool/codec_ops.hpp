// SPDX-License-Identifier: Apache-2.0
/// @file
/// The library's operations for a shipped codec that is chosen by name at run time. Layouts come
/// from the header of a .kvt file, so that writers and readers build the same ones.
#pragma once

#include <kvarts/codec.hpp>
#include <kvarts/encode.hpp>
#include <kvarts/kvt_header.hpp>
#include <kvarts/layout.hpp>
#include <kvarts/scheme.hpp>
#include <kvarts/status.hpp>
#include <kvarts/transform.hpp>
#include <kvarts/view.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

/// A scale and a zero-point as they are stored: the bits of a 16-bit or 32-bit number, and of a
/// 16-bit one.
struct stored_parameters {
  std::uint32_t scale = 0;
  std::uint16_t zero = 0;
};

/// One layer of coded K or V of whatever codec.
template <class Byte>
struct coded_view {
  Byte* data = nullptr;
  layout map{};
};
using coded_source = coded_view<std::byte const>;
using coded_target = coded_view<std::byte>;

/// The operations of one codec; each is the library's function of the same name.
class codec_ops {
 public:
  virtual ~codec_ops() = default;
  virtual codec_info info() const noexcept = 0;

  /// Who published the quantizer.
  virtual origin source() const noexcept = 0;

  /// Sets what the codec decides of a header: name, bits, axis, scale type and zero-points.
  virtual void describe(kvt_header& header) const noexcept = 0;

  /// The layout of a payload: row records or head tiles, of the header's extents. A group length or
  /// tokens of a tile of 0 mean the usual ones. Throws `kvarts::error`.
  virtual layout make_layout(kvt_header const& header) const = 0;

  virtual encode_result encode(coded_target dst, source_view src, token_range tokens,
                               transform_view const& transform) const noexcept = 0;
  virtual status decode(coded_source src, target_view dst, token_range tokens,
                        transform_view const& transform) const noexcept = 0;
  virtual status gemv_qk(coded_source keys, token_range tokens, int query_heads,
                         float const* queries, double const* bias,
                         float* scores) const noexcept = 0;
  virtual status gemv_pv(coded_source values, token_range tokens, int query_heads, float const* p,
                         float* output) const noexcept = 0;

  /// Codes and parameters; the identity codecs have none and may not be asked.
  virtual void load_codes(coded_source src, int head, std::int64_t token,
                          std::uint8_t* codes) const noexcept = 0;
  virtual stored_parameters load_parameters(coded_source src, int head, std::int64_t token,
                                            int channel) const noexcept = 0;
};

/// The codec of this name, grouped along `along` (row codecs ignore it); null when there is none.
codec_ops const* find_codec(std::string_view name, axis along);

/// Head tiles in memory, without a file; `group` is 0 for row codecs. Throws `kvarts::error`.
layout tiles_of(codec_ops const& codec, int group, int heads, int head_dim, std::int64_t tokens);

/// Names of all shipped codecs, each once.
std::vector<std::string> codec_names();

}  // namespace kvarts::tool
