// SPDX-License-Identifier: Apache-2.0
/// @file
/// Instances of attention. Presets whose codecs share formats share a kernel: they belong into one
/// file, so that none is compiled twice.
#pragma once

#include <kvarts/kernels/attention.cuh>
#include <kvarts/scheme.hpp>

#include <tuple>

namespace kvarts::kernels {

template <auto const& Preset>
using key_codec_of = typename std::remove_cvref_t<decltype(Preset)>::key_codec;
template <auto const& Preset>
using value_codec_of = typename std::remove_cvref_t<decltype(Preset)>::value_codec;

/// `template struct attention_instances<preset::a, ...>;` puts attention on the codes of these
/// presets into an object file, in the packings that it reads.
template <auto const&... Presets>
struct attention_instances {
  using keys = fragment<operand::keys>;
  using values = fragment<operand::values>;
  static constexpr std::tuple plan{
      &cuda::plan_attention<key_codec_of<Presets>, value_codec_of<Presets>, keys, values>...};
  static constexpr std::tuple explain{
      &cuda::explain_attention<key_codec_of<Presets>, value_codec_of<Presets>, keys, values>...};
  static constexpr std::tuple attention{
      &cuda::attention<key_codec_of<Presets>, value_codec_of<Presets>, keys, values>...};
};

}  // namespace kvarts::kernels
