// SPDX-License-Identifier: Apache-2.0
// What products refuse: by name, with the number, and as the error that an engine tests for.
#define KVARTS_HEAD_DIMS 64
#define KVARTS_BLOCKS 32
#define KVARTS_CHANNEL_GROUPS 32
#include "support/gemv/gemv_checks.hpp"

namespace {

using namespace kvarts;
using namespace kvarts::test;

using keys = fragment<operand::keys>;
using values = fragment<operand::values>;
using row4 = row_codec<midrise<4>>;
using channels4 = codec<symmetric<4, range::wide>, axis::channel>;
using tokens4 = codec<symmetric<4, range::wide>, axis::token>;

std::int64_t const end = 64;

cuda::batch one_sequence() { return {.max_tokens = 64, .ends = &end}; }

alignas(16) std::byte const memory[16] = {};

template <class Codec, class Packing>
void require_refused(layout const& m, int query_heads, cuda::batch const& b,
                     std::string const& sentence, cudaError_t code = cudaErrorNotSupported,
                     std::byte const* data = memory) {
  view<Codec, std::byte const, Packing> const v{data, m, {}};
  CHECK(cuda::explain_gemv(operand::keys, v, b, query_heads).sentence() == sentence);
  CHECK(cuda::gemv_qk(v, b, query_heads, nullptr, nullptr, nullptr, nullptr) == code);
}

TEST_CASE("what is not compiled is not supported") {
  require_refused<row4, keys>(make_head_tiles<row4, keys>(2, 128, 64), 2, one_sequence(),
                              "no kernel is compiled for head_dim 128");
  require_refused<row4, keys>(make_head_tiles<row4, keys>(2, 64, 64, {.tile_tokens = 16}), 2,
                              one_sequence(), "no kernel is compiled for tiles of 16 tokens");
  require_refused<channels4, keys>(make_head_tiles<channels4, keys>(2, 64, 64, {.group = 16}), 2,
                                   one_sequence(),
                                   "no kernel is compiled for groups of 16 channels");
  require_refused<row4, keys>(make_head_tiles<row4, keys>(2, 64, 96, {.tile_tokens = 96}), 2,
                              one_sequence(),
                              "kernels need tiles of a power of two of tokens, not 96");
  require_refused<tokens4, keys>(
      make_head_tiles<tokens4, keys>(2, 64, 64, {.tile_tokens = 32, .group = 16}), 2,
      one_sequence(), "kernels read blocks of 32 tokens: groups of 16 cut them");
}

TEST_CASE("codes in another packing are not supported") {
  std::string const sentence =
      "kernels read codes of 4 bits in the fragment packing of their side: repack them";
  require_refused<row4, linear>(make_head_tiles<row4>(2, 64, 64), 2, one_sequence(), sentence);
  require_refused<row4, values>(make_head_tiles<row4, values>(2, 64, 64), 2, one_sequence(),
                                sentence);
}

TEST_CASE("memory that kernels cannot load at once is not supported") {
  layout m = make_head_tiles<row4, keys>(2, 64, 64);
  view<row4, std::byte const, keys> const v{memory + 2, m, {}};
  CHECK(cuda::gemv_qk(v, one_sequence(), 2, nullptr, nullptr, nullptr, nullptr) ==
        cudaErrorNotSupported);
}

TEST_CASE("arguments that cannot be are invalid") {
  layout const m = make_head_tiles<row4, keys>(4, 64, 64);
  require_refused<row4, keys>(m, 10, one_sequence(), "4 KV heads do not divide 10 query heads",
                              cudaErrorInvalidValue);
  require_refused<row4, keys>(m, 4, {.max_tokens = 64}, "the 1 sequences have no ends",
                              cudaErrorInvalidValue);
  require_refused<row4, keys>(m, 4, {.sequences = -1}, "a launch has 0 to 65535 sequences, not -1",
                              cudaErrorInvalidValue);
  layout const paged = make_pages<row4, keys>(4, 64, 2, 32);
  require_refused<row4, keys>(paged, 4, one_sequence(),
                              "a layout with pages of 32 tokens needs a block table, others none",
                              cudaErrorInvalidValue);
}

TEST_CASE("nothing to do is no error") {
  layout const m = make_head_tiles<row4, keys>(4, 64, 64);
  view<row4, std::byte const, keys> const v{memory, m, {}};
  std::int64_t const none = 0;
  CHECK(cuda::gemv_qk(v, {.sequences = 0}, 4, nullptr, nullptr, nullptr, nullptr) == cudaSuccess);
  CHECK(cuda::gemv_qk(v, {.max_tokens = 0, .ends = &none}, 4, nullptr, nullptr, nullptr, nullptr) ==
        cudaSuccess);
}

}  // namespace
