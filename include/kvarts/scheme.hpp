// SPDX-License-Identifier: Apache-2.0
/// @file
/// Presets: a codec for keys, one for values, their transforms and 16-bit windows, as data.
#pragma once

#include <kvarts/codec.hpp>
#include <kvarts/quantizer.hpp>
#include <kvarts/rotation.hpp>
#include <kvarts/window.hpp>

#include <string_view>
#include <tuple>
#include <type_traits>

namespace kvarts {

/// What happens to keys before they are coded.
enum class key_transform : std::uint8_t {
  none,
  innerq,             ///< InnerQ's norm, from the prefill
  calibrated,         ///< center, norm and one round of rotation, from calibration text
  turned,             ///< TurboQuant's two rounds of rotation
  calibrated_turned,  ///< center and norm from calibration text, then two rounds
};

/// The rotation of a key transform.
constexpr rotation key_rotation(key_transform t) noexcept {
  switch (t) {
    case key_transform::none:
    case key_transform::innerq: return {};
    case key_transform::calibrated: return {1, 1};
    default: return {2, 1};
  }
}

/// Whether a key transform has parts that come from tensors: its caches code nothing before they
/// are frozen.
constexpr bool needs_data(key_transform t) noexcept {
  return t != key_transform::none && t != key_transform::turned;
}

/// Whether a key transform takes center and norm from a calibration.
constexpr bool needs_calibration(key_transform t) noexcept {
  return t == key_transform::calibrated || t == key_transform::calibrated_turned;
}

/// What happens to values before they are coded.
enum class value_transform : std::uint8_t {
  none,
  rotated,  ///< one round of rotation
  turned,   ///< TurboQuant's two rounds
};

/// The rotation of a value transform.
constexpr rotation value_rotation(value_transform t) noexcept {
  return t == value_transform::none ? rotation{}
                                    : rotation{t == value_transform::rotated ? 1 : 2, 1};
}

/// Where a preset's numbers come from.
enum class origin : std::uint8_t { baseline, hiqcache, innerq, kivi, turboquant, kvarts };

constexpr std::string_view to_string(origin o) noexcept {
  switch (o) {
    case origin::baseline: return "baseline";
    case origin::hiqcache: return "HiQCache";
    case origin::innerq: return "InnerQ";
    case origin::kivi: return "KIVI";
    case origin::turboquant: return "TurboQuant";
    default: return "kvarts";
  }
}

/// A pair of codecs with transforms and windows. Any pair is a scheme; the shipped ones are
/// `presets`.
template <codec_type KeyCodec, codec_type ValueCodec>
struct scheme {
  using key_codec = KeyCodec;
  using value_codec = ValueCodec;

  std::string_view name;
  key_transform keys = key_transform::none;
  value_transform values = value_transform::none;
  windows window{};
  origin source = origin::kvarts;
};

namespace detail {

template <int Bits, range Range>
using by_channel = codec<symmetric<Bits, Range>, axis::channel, 32>;
template <int Bits, range Range>
using by_token = codec<symmetric<Bits, Range>, axis::token, 32>;
template <range Range>
using hybrid_by_token = codec<hybrid<2, Range>, axis::token, 32>;
using int8_rows = row_codec<int8_head>;
using kivi_keys = codec<affine<2>, axis::token, 32>;
using kivi_values = codec<affine<2>, axis::channel, 32>;
template <int Bits, class Scale>
using codebook_rows = row_codec<codebook<Bits, Scale>>;

template <int KeyBits, int ValueBits>
constexpr auto rotated(std::string_view name, windows w) noexcept {
  return scheme<row_codec<midrise<KeyBits>>, row_codec<midrise<ValueBits>>>{
      name, key_transform::calibrated, value_transform::rotated, w, origin::kvarts};
}

/// Keys and values as they are.
template <codec_type KeyCodec, codec_type ValueCodec>
constexpr auto untransformed(std::string_view name, windows w, origin source) noexcept {
  return scheme<KeyCodec, ValueCodec>{name, key_transform::none, value_transform::none, w, source};
}

inline constexpr windows no_windows{0, 0};
inline constexpr windows sink_and_recent{32, 96};

/// Keys along channels after InnerQ's norm, 3 bits.
template <range Range, codec_type ValueCodec>
constexpr auto innerq(std::string_view name, origin source = origin::innerq) noexcept {
  return scheme<by_channel<3, Range>, ValueCodec>{name, key_transform::innerq,
                                                  value_transform::none, sink_and_recent, source};
}

}  // namespace detail

/// The presets, for programs that choose one when they are compiled.
namespace preset {

using namespace detail;  // the codecs above
using enum range;

inline constexpr auto fp16 =
    untransformed<identity<half>, identity<half>>("fp16", no_windows, origin::baseline);
inline constexpr auto bf16 =
    untransformed<identity<bfloat16>, identity<bfloat16>>("bf16", no_windows, origin::baseline);
inline constexpr auto int8 =
    untransformed<int8_rows, int8_rows>("int8", no_windows, origin::hiqcache);
inline constexpr auto int4 = untransformed<by_channel<4, wide>, by_token<4, wide>>(
    "int4", sink_and_recent, origin::baseline);
inline constexpr auto innerq_base = innerq<narrow, by_token<3, narrow>>("innerq_base");
inline constexpr auto innerq_hybrid = innerq<narrow, hybrid_by_token<narrow>>("innerq_hybrid");
inline constexpr auto innerq_small = innerq<narrow, by_token<2, narrow>>("innerq_small");
inline constexpr auto innerq_base_wide = innerq<wide, by_token<3, wide>>("innerq_base_wide");
inline constexpr auto innerq_hybrid_wide =
    innerq<wide, hybrid_by_token<wide>>("innerq_hybrid_wide");
inline constexpr auto innerq_small_wide = innerq<wide, by_token<2, wide>>("innerq_small_wide");
inline constexpr auto innerq_base_searched =
    innerq<searched, by_token<3, searched>>("innerq_base_searched", origin::kvarts);
inline constexpr auto innerq_small_searched =
    innerq<searched, by_token<2, searched>>("innerq_small_searched", origin::kvarts);
inline constexpr auto kivi =
    untransformed<kivi_keys, kivi_values>("kivi", windows{0, 128}, origin::kivi);
inline constexpr auto kivi_sink =
    untransformed<kivi_keys, kivi_values>("kivi_sink", sink_and_recent, origin::kivi);
inline constexpr scheme<codebook_rows<4, float>, codebook_rows<3, float>> turboquant{
    "turboquant", key_transform::turned, value_transform::turned, {0, 128}, origin::turboquant};
inline constexpr scheme<codebook_rows<4, half>, codebook_rows<3, half>> turboquant_calibrated{
    "turboquant_calibrated", key_transform::calibrated_turned, value_transform::turned,
    sink_and_recent, origin::kvarts};
inline constexpr auto k8v8 = rotated<8, 8>("k8v8", no_windows);
inline constexpr auto k4v4 = rotated<4, 4>("k4v4", sink_and_recent);
inline constexpr auto k4v3 = rotated<4, 3>("k4v3", sink_and_recent);
inline constexpr auto k4v2 = rotated<4, 2>("k4v2", sink_and_recent);
inline constexpr auto k3v3 = rotated<3, 3>("k3v3", sink_and_recent);
inline constexpr auto k3v2 = rotated<3, 2>("k3v2", sink_and_recent);
inline constexpr auto k2v2 = rotated<2, 2>("k2v2", sink_and_recent);

}  // namespace preset

/// All presets, in the order in which programs list them.
inline constexpr std::tuple presets{
    preset::fp16,
    preset::bf16,
    preset::int8,
    preset::int4,
    preset::innerq_base,
    preset::innerq_hybrid,
    preset::innerq_small,
    preset::innerq_base_wide,
    preset::innerq_hybrid_wide,
    preset::innerq_small_wide,
    preset::innerq_base_searched,
    preset::innerq_small_searched,
    preset::kivi,
    preset::kivi_sink,
    preset::turboquant,
    preset::turboquant_calibrated,
    preset::k8v8,
    preset::k4v4,
    preset::k4v3,
    preset::k4v2,
    preset::k3v3,
    preset::k3v2,
    preset::k2v2,
};

/// Calls `f(preset)` for every preset, in order.
template <class F>
constexpr void for_each_preset(F&& f) {
  std::apply([&](auto const&... preset) { (f(preset), ...); }, presets);
}

/// Calls `f(preset)` for the preset of this name; false, and no call, when there is none.
template <class F>
constexpr bool visit_preset(std::string_view name, F&& f) {
  return std::apply(
      [&](auto const&... preset) { return ((preset.name == name && (f(preset), true)) || ...); },
      presets);
}

}  // namespace kvarts
