// SPDX-License-Identifier: Apache-2.0
// Attention of every preset, its windows, rotations and codes, against float64.
#include "support/sanitized.hpp"
#if KVARTS_TEST_SANITIZED
#define KVARTS_HEAD_DIMS 64
#else
#define KVARTS_HEAD_DIMS 128
#endif
#define KVARTS_BLOCKS 32
#define KVARTS_CHANNEL_GROUPS 32
#define KVARTS_COLUMN_TILES 1
#define KVARTS_WINDOW_TYPES half
#include "support/attention/attention_checks.hpp"

#include <string_view>
#include <tuple>
#include <utility>

namespace {

using namespace kvarts;
using namespace kvarts::test;

/// With a sanitizer one of each kind: every kernel costs seconds to compile.
constexpr bool is_checked(std::string_view name) {
  if (!sanitized) return true;
  for (std::string_view const kind : {"int8", "innerq_hybrid", "kivi", "turboquant", "k3v2"}) {
    if (name == kind) return true;
  }
  return false;
}

/// A prefill beyond the windows, with a tail that is no whole block, on one and on many blocks of
/// threads.
template <class K, class V>
void check_preset(scheme<K, V> const& preset, std::uint64_t seed) {
  CAPTURE(std::string(preset.name));
  attention_case c{.key_dim = KVARTS_HEAD_DIMS, .value_dim = KVARTS_HEAD_DIMS};
  c.window = preset.window;
  c.shifts_keys = needs_data(preset.keys);
  c.key_rotation = key_rotation(preset.keys);
  c.value_rotation = value_rotation(preset.values);
  c.lengths = {300};
  check_attention<K, V>(c, seed);
  c.heads = 1;
  c.query_heads = 5;
  c.lengths = {33, 0, 517};
  check_attention<K, V>(c, seed, 3);
}

template <std::size_t I>
void check_preset_at(std::uint64_t seed) {
  constexpr auto preset = std::get<I>(presets);
  // Plain bfloat16 has windows of its own kind: see attention_queries_test.
  constexpr bool elsewhere = preset.name == preset::bf16.name;
  if constexpr (!elsewhere && is_checked(preset.name)) check_preset(preset, seed);
}

TEST_CASE("every preset of the library") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  [&]<std::size_t... I>(std::index_sequence<I...>) { (check_preset_at<I>(seed), ...); }
  (std::make_index_sequence<std::tuple_size_v<decltype(presets)>>{});
}

TEST_CASE("plain halfs with windows beside them") {
  check_preset(scheme<identity<half>, identity<half>>{.name = "fp16", .window = {32, 96}},
               test_seed());
}

}  // namespace
