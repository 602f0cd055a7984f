// SPDX-License-Identifier: Apache-2.0
/// @file
/// A host tier by the name of a preset, as engines in other languages ask for it: what the C entry
/// points of c_api.h stand on.
#pragma once

#include <kvarts/kvarts.hpp>
#include <kvarts/tier/layers.hpp>
#include <kvarts/tier/page_file.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kvarts::adapters {

/// The codecs that this build can name; one more is one more type here.
inline constexpr auto coders =
    tier::coders_of<row_codec<int8_head>, row_codec<midrise<8>>, row_codec<midrise<4>>,
                    row_codec<midrise<3>>, row_codec<midrise<2>>, identity<half>,
                    identity<bfloat16>>();

/// What a tier is made of. `center` and `norm` of the keys are float32 `[layers, heads, head_dim]`,
/// null where the preset needs none; they are copied.
struct tier_options {
  std::string preset;
  std::string model;
  std::int32_t layers = 0;
  std::int32_t heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t page_tokens = 1;
  std::int32_t alignment = 128;
  tier::host_layout layout = tier::host_layout::layer_first;
  dtype source = dtype::bf16;
  std::int32_t threads = 1;
  float const* center = nullptr;
  float const* norm = nullptr;
};

/// One layer of an engine's memory: `[tokens, heads, head_dim]` of K and of V.
template <class Byte>
struct layer_memory {
  Byte* keys = nullptr;
  Byte* values = nullptr;
};

/// A tier's geometry, coders and transforms; its memory is the engine's.
class host_tier {
 public:
  /// Throws `error` naming the preset or number that cannot be.
  explicit host_tier(tier_options const& o);
  host_tier(host_tier const&) = delete;
  host_tier& operator=(host_tier const&) = delete;

  tier::geometry const& geometry() const noexcept { return geometry_; }
  std::int32_t threads() const noexcept { return threads_; }
  dtype source() const noexcept { return source_; }
  std::int64_t row_bytes() const noexcept {
    return std::int64_t{geometry_.heads} * geometry_.kinds[0].keys[0].head_dim *
           element_size(source_);
  }

  /// The same tier with page records of `tokens` tokens, as page files of chunks hold them.
  tier::geometry chunk_geometry(std::int32_t tokens) const;

  /// What the page files of such a geometry have in common.
  tier::page_format format(tier::geometry const& g) const {
    return tier::page_format({g, source_, key_transforms_, value_transforms_, model_});
  }

  /// A layer of an engine's memory as the tier's moves take it.
  template <class Byte>
  tier::plain_layer<Byte> plain(layer_memory<Byte> const& memory, int layer,
                                std::int64_t tokens) const {
    auto const& rows = geometry_.kinds[0].keys[0];
    layout const m =
        make_tensor_layout(source_, geometry_.heads, rows.head_dim, tokens,
                           contiguous(order::token_major, geometry_.heads, rows.head_dim, tokens));
    auto const i = static_cast<std::size_t>(layer);
    tier::plain_layer<Byte> one;
    one.keys[0] = {{memory.keys, source_, m, {}}, key_transforms_[i]};
    one.values[0] = {{memory.values, source_, m, {}}, value_transforms_[i]};
    return one;
  }

 private:
  void copy_calibration(tier_options const& o);

  tier::geometry geometry_{};
  dtype source_{};
  std::int32_t threads_ = 1;
  std::string model_;
  std::vector<float> center_, norm_;
  std::vector<transform_view> key_transforms_, value_transforms_;
};

}  // namespace kvarts::adapters
