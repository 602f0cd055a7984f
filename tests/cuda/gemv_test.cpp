// SPDX-License-Identifier: Apache-2.0
// The products that `kvarts::cuda` has compiled, on a device: every preset's codecs, GQA, batches,
// pages, spans that begin anywhere.
#include "gemv_on_device.hpp"

#include <kvarts/scheme.hpp>

namespace {

using namespace kvarts;
using namespace kvarts::test;

/// Calls `check(shape)` for shapes that a codec may have, the first of them the plainest.
template <class F>
void for_each_shape(F&& check) {
  check(gemv_shape{.heads = 2, .query_heads = 6, .lengths = {77}});
  check(gemv_shape{.heads = 1, .query_heads = 11, .lengths = {33, 0, 161}});
  check(gemv_shape{.heads = 2, .query_heads = 8, .page_tokens = 64, .lengths = {1, 0, 200, 128}});
  check(gemv_shape{.heads = 1,
                   .query_heads = 4,
                   .page_tokens = 32,
                   .lengths = {90, 200, 128},
                   .begins = {5, 127, 32}});
}

TEST_CASE("products of all presets are those of the decoded rows") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  for_each_preset([&](auto const& preset) {
    using scheme_type = std::remove_cvref_t<decltype(preset)>;
    CAPTURE(std::string(preset.name));
    for_each_shape([&](gemv_shape const& s) {
      check_keys<typename scheme_type::key_codec>(s, seed);
      check_values<typename scheme_type::value_codec>(s, seed, 1);
      check_values<typename scheme_type::value_codec>(s, seed, 3);
    });
  });
}

TEST_CASE("long sequences, split as the device wants") {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  gemv_shape const s{.heads = 2, .query_heads = 8, .lengths = {5000, 4097}};
  using codec = row_codec<midrise<3>>;
  check_keys<codec>(s, seed);
  check_values<codec>(s, seed, 8);
}

}  // namespace
