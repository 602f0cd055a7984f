// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which rows `kvarts eval` has to code: presets share codecs and transforms, and what they share
/// is coded and compared once.
#pragma once

#include "codec_ops.hpp"
#include "eval_result.hpp"

#include <kvarts/scheme.hpp>
#include <kvarts/transform.hpp>
#include <kvarts/view.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvarts::tool {

/// One way to code the keys, or the values, of a layer: a codec, its group length (0 for row
/// codecs), and what comes before it.
template <class Transform>
struct coding {
  codec_ops const* codec = nullptr;
  int group = 0;
  Transform transform{};

  /// Tokens that are coded at a time.
  std::int64_t step() const { return codec->info().grouped_along == axis::token ? group : 1; }

  friend bool operator==(coding const&, coding const&) = default;
};

using key_coding = coding<key_transform>;
using value_coding = coding<value_transform>;

/// A preset as it is at run time.
struct runtime_preset {
  std::string name;
  key_coding keys;
  value_coding values;
  windows window{};
};

/// Encodes all rows `[tokens, heads, head_dim]` into head tiles and decodes them to model space:
/// float32
/// `[heads, tokens, head_dim]`.
std::vector<float> recode(codec_ops const& codec, int group, source_view rows,
                          transform_view const& transform);

/// Rows as codecs see them after a transform, rounded to fp16: float32 `[heads, tokens, head_dim]`.
std::vector<float> coded_space(source_view rows, transform_view const& transform);

/// Coded keys, read with windows; keys and values are read with the same ones. A place in the lists
/// of an `eval_plan`.
struct key_reading {
  std::size_t keys = 0;
  windows window{};

  friend bool operator==(key_reading const&, key_reading const&) = default;
};

/// Places in the lists of an `eval_plan`: a reading of keys, and the values that go with it.
struct coding_pair {
  std::size_t reading = 0;
  std::size_t values = 0;

  friend bool operator==(coding_pair const&, coding_pair const&) = default;
};

/// A preset, and which of the pairs measures it.
struct planned_preset {
  std::string name;
  bool windows_on = false;
  bool bears_offsets = false;
  effective_bits bits;
  std::size_t pair = 0;
};

/// Presets and the different codings and pairs that they come down to.
struct eval_plan {
  std::vector<planned_preset> presets;
  std::vector<key_coding> keys;
  std::vector<value_coding> values;
  std::vector<key_reading> readings;
  std::vector<coding_pair> pairs;
};

/// The plan for these presets, shipped ones or `own` (none: all of them), in the order given; a
/// name that comes again is left out. Windows off come before windows on. Bits are those of layouts
/// of this head_dim. Throws `tool_error` (2) for an unknown name.
eval_plan plan_presets(std::vector<std::string> const& names, std::vector<runtime_preset> own,
                       windows_choice choice, int head_dim);

}  // namespace kvarts::tool
