// SPDX-License-Identifier: Apache-2.0
// Presets against the table of the codecs' description; codecs and presets by name.
#include "support/catch.hpp"

#include <kvarts/kvarts.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace kvarts;

struct expected_preset {
  std::string name, key_codec, key_axis, value_codec, value_axis;
  key_transform keys;
  value_transform values;
  int sink, recent;
  double key_bits, value_bits;
};

/// The table, in its order.
std::vector<expected_preset> expected_presets() {
  auto const plain = key_transform::none, innerq = key_transform::innerq,
             calibrated = key_transform::calibrated, turned = key_transform::turned,
             calibrated_turned = key_transform::calibrated_turned;
  auto const none = value_transform::none, rotated = value_transform::rotated,
             turned_v = value_transform::turned;
  std::string const s3n = "symmetric3_narrow", s3w = "symmetric3_wide", s3s = "symmetric3_searched";
  return {
      {"fp16", "f16", "row", "f16", "row", plain, none, 0, 0, 16, 16},
      {"bf16", "bf16", "row", "bf16", "row", plain, none, 0, 0, 16, 16},
      {"int8", "int8_head", "row", "int8_head", "row", plain, none, 0, 0, 8.125, 8.125},
      {"int4", "symmetric4_wide", "channel", "symmetric4_wide", "token", plain, none, 32, 96, 4.5,
       4.5},
      {"innerq_base", s3n, "channel", s3n, "token", innerq, none, 32, 96, 3.5, 3.5},
      {"innerq_hybrid", s3n, "channel", "hybrid2_narrow", "token", innerq, none, 32, 96, 3.5, 3.0},
      {"innerq_small", s3n, "channel", "symmetric2_narrow", "token", innerq, none, 32, 96, 3.5,
       2.5},
      {"innerq_base_wide", s3w, "channel", s3w, "token", innerq, none, 32, 96, 3.5, 3.5},
      {"innerq_hybrid_wide", s3w, "channel", "hybrid2_wide", "token", innerq, none, 32, 96, 3.5,
       3.0},
      {"innerq_small_wide", s3w, "channel", "symmetric2_wide", "token", innerq, none, 32, 96, 3.5,
       2.5},
      {"innerq_base_searched", s3s, "channel", s3s, "token", innerq, none, 32, 96, 3.5, 3.5},
      {"innerq_small_searched", s3s, "channel", "symmetric2_searched", "token", innerq, none, 32,
       96, 3.5, 2.5},
      {"kivi", "affine2", "token", "affine2", "channel", plain, none, 0, 128, 3.0, 3.0},
      {"kivi_sink", "affine2", "token", "affine2", "channel", plain, none, 32, 96, 3.0, 3.0},
      {"turboquant", "codebook4_f32", "row", "codebook3_f32", "row", turned, turned_v, 0, 128, 4.25,
       3.25},
      {"turboquant_calibrated", "codebook4_f16", "row", "codebook3_f16", "row", calibrated_turned,
       turned_v, 32, 96, 4.125, 3.125},
      {"k8v8", "midrise8", "row", "midrise8", "row", calibrated, rotated, 0, 0, 8.125, 8.125},
      {"k4v4", "midrise4", "row", "midrise4", "row", calibrated, rotated, 32, 96, 4.125, 4.125},
      {"k4v3", "midrise4", "row", "midrise3", "row", calibrated, rotated, 32, 96, 4.125, 3.125},
      {"k4v2", "midrise4", "row", "midrise2", "row", calibrated, rotated, 32, 96, 4.125, 2.125},
      {"k3v3", "midrise3", "row", "midrise3", "row", calibrated, rotated, 32, 96, 3.125, 3.125},
      {"k3v2", "midrise3", "row", "midrise2", "row", calibrated, rotated, 32, 96, 3.125, 2.125},
      {"k2v2", "midrise2", "row", "midrise2", "row", calibrated, rotated, 32, 96, 2.125, 2.125},
  };
}

template <class S>
void check_preset(S const& s, expected_preset const& e) {
  using K = typename S::key_codec;
  using V = typename S::value_codec;
  CHECK(std::string(s.name) == e.name);
  CHECK(std::string(std::string_view(K::name())) == e.key_codec);
  CHECK(std::string(to_string(K::grouped_along)) == e.key_axis);
  CHECK(std::string(std::string_view(V::name())) == e.value_codec);
  CHECK(std::string(to_string(V::grouped_along)) == e.value_axis);
  CHECK(s.keys == e.keys);
  CHECK(s.values == e.values);
  CHECK(s.window.sink == e.sink);
  CHECK(s.window.recent == e.recent);
  CHECK(make_head_tiles<K>(1, 128, 32).effective_bits() == e.key_bits);
  CHECK(make_head_tiles<V>(1, 128, 32).effective_bits() == e.value_bits);
  int const group = K::grouped_along == axis::row ? 0 : 32;
  CHECK(make_head_tiles<K>(1, 128, 32).group == group);
}

TEST_CASE("presets are those of the table, in its order") {
  std::vector<std::string> expected, names;
  for_each_preset([&](auto const& s) { names.push_back(std::string(s.name)); });
  for (auto const& e : expected_presets()) {
    CAPTURE(e.name);
    expected.push_back(e.name);
    bool const found = visit_preset(e.name, [&](auto const& s) { check_preset(s, e); });
    CHECK(found);
  }
  CHECK(names == expected);
}

TEST_CASE("names that no preset has find nothing") {
  for (auto const* name : {"", "int", "int88", "INT8", "k4v5", "kivi ", "int8_head"}) {
    CAPTURE(name);
    CHECK_FALSE(visit_preset(name, [](auto const&) { FAIL("must not be called"); }));
  }
}

/// "name/axis" of what `visit_codec` finds, "" for nothing.
std::string found_codec(std::string_view name, axis along) {
  std::string found;
  bool const any = visit_codec(name, along, [&](auto tag) {
    using C = typename decltype(tag)::type;
    found = std::string(std::string_view(C::name())) + "/";
    found += to_string(C::grouped_along);
  });
  CHECK(any == !found.empty());
  return found;
}

TEST_CASE("codecs are found by name and axis") {
  std::vector<codec_info> all;
  for_each_codec([&](auto tag) { all.push_back(info_of<typename decltype(tag)::type>()); });
  std::set<std::string> names;
  for (auto const& info : all) {
    std::string const name(std::string_view(info.name));
    CAPTURE(name, to_string(info.grouped_along));
    names.insert(name + "/" + std::string(to_string(info.grouped_along)));
    for (axis const along : {axis::channel, axis::token}) {
      axis const expected = info.grouped_along == axis::row ? axis::row : along;
      CHECK(found_codec(name, along) == name + "/" + std::string(to_string(expected)));
    }
  }
  CHECK(names.size() == all.size());
  for (auto const* name : {"", "symmetric3", "affine5", "midrise", "hybrid2_searched", "fp16"}) {
    CHECK(found_codec(name, axis::channel).empty());
  }
}

TEST_CASE("names of codecs") {
  CHECK(std::string_view(symmetric<3, range::narrow>::name()) == "symmetric3_narrow");
  CHECK(std::string_view(symmetric<8, range::searched>::name()) == "symmetric8_searched");
  CHECK(std::string_view(affine<2>::name()) == "affine2");
  CHECK(std::string_view(hybrid<2, range::wide>::name()) == "hybrid2_wide");
  CHECK(std::string_view(midrise<3>::name()) == "midrise3");
  CHECK(std::string_view(int8_head::name()) == "int8_head");
  CHECK(std::string_view(identity<half>::name()) == "f16");
  CHECK(std::string_view(identity<bfloat16>::name()) == "bf16");
}

// Any pair is a scheme, at compile time.
constexpr scheme<codec<affine<4>, axis::token, 64>, row_codec<int8_head>> mine{
    "mine", key_transform::none, value_transform::none, {64, 128}};

TEST_CASE("a scheme of a user") {
  using K = decltype(mine)::key_codec;
  STATIC_REQUIRE(K::group == 64);
  STATIC_REQUIRE(mine.window.recent == 128);
  STATIC_REQUIRE(mine.source == origin::kvarts);
  CHECK(make_head_tiles<K>(2, 96, 100).effective_bits() == 4.5);
  CHECK(make_head_tiles<K>(2, 96, 100).tile_tokens == 64);
  CHECK_FALSE(visit_preset(mine.name, [](auto const&) {}));
}

}  // namespace
