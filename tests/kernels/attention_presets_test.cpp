// SPDX-License-Identifier: Apache-2.0
// Attention of every kind of preset, windows and codes, against float64.
#define KVARTS_HEAD_DIMS 128
#define KVARTS_BLOCKS 32
#define KVARTS_CHANNEL_GROUPS 32
#define KVARTS_COLUMN_TILES 1
#define KVARTS_WINDOW_TYPES half
#include "support/attention/attention_checks.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

/// A prefill beyond the windows, with a tail that is no whole block, on one and on many blocks of
/// threads.
template <class K, class V>
void check_preset(windows w) {
  std::uint64_t const seed = test_seed();
  CAPTURE(seed);
  check_attention<K, V>({.window = w, .lengths = {300}}, seed);
  check_attention<K, V>({.heads = 1, .query_heads = 5, .window = w, .lengths = {33, 0, 517}}, seed,
                        3);
}

TEST_CASE("k4v4, k3v2, k2v2, k8v8") {
  check_preset<row_codec<midrise<4>>, row_codec<midrise<4>>>({32, 96});
  check_preset<row_codec<midrise<3>>, row_codec<midrise<2>>>({32, 96});
  check_preset<row_codec<midrise<8>>, row_codec<midrise<8>>>({0, 0});
}

TEST_CASE("InnerQ, whose keys and values leave the window apart") {
  using keys = codec<symmetric<3, range::narrow>, axis::channel, 32>;
  check_preset<keys, codec<symmetric<3, range::narrow>, axis::token, 32>>({32, 96});
  check_preset<keys, codec<hybrid<2, range::narrow>, axis::token, 32>>({32, 96});
}

TEST_CASE("KIVI, whose values are coded before their keys") {
  using keys = codec<affine<2>, axis::token, 32>;
  check_preset<keys, codec<affine<2>, axis::channel, 32>>({0, 128});
}

TEST_CASE("TurboQuant") {
  check_preset<row_codec<codebook<4, float>>, row_codec<codebook<3, float>>>({0, 128});
}

TEST_CASE("INT8 per head, and plain halfs") {
  check_preset<row_codec<int8_head>, row_codec<int8_head>>({0, 0});
  check_preset<identity<half>, identity<half>>({0, 0});
  check_preset<identity<half>, identity<half>>({32, 96});
}

}  // namespace
