// SPDX-License-Identifier: Apache-2.0
// A pool of more than 4 GiB, of which two pages are touched: offsets that lose bits would fault, or
// write into the wrong page.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

/// Reserved address space; only touched pages take memory.
class sparse_memory {
 public:
  explicit sparse_memory(std::int64_t size) : size_(static_cast<std::size_t>(size)) {
    void* const memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
  }
  ~sparse_memory() {
    if (data_ != nullptr) munmap(data_, size_);
  }
  sparse_memory(sparse_memory const&) = delete;
  sparse_memory& operator=(sparse_memory const&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::size_t size_;
  std::byte* data_;
};

constexpr int heads = 8, head_dim = 256, page_tokens = 16;

template <class C>
void check_far_page(std::int64_t pages, std::int32_t far) {
  layout const m =
      make_pages<C>(heads, head_dim, pages, page_tokens, {.tile_tokens = page_tokens, .group = 16});
  CAPTURE(std::string(std::string_view(C::name())), pages, far, m.size_bytes());
  REQUIRE(m.size_bytes() >= std::int64_t{5} << 30);
  sparse_memory const pool(m.size_bytes());
  REQUIRE(pool.data() != nullptr);
  random_source random(test_seed());
  rows const x = normal_rows(random, heads, head_dim, 2 * page_tokens);
  std::int32_t const table[] = {0, far};
  view<C> const v{pool.data(), m, {table, 2}};
  REQUIRE(encode(v, x.source(), {0, 2 * page_tokens}).code == status::ok);

  layout const near =
      make_pages<C>(heads, head_dim, 2, page_tokens, {.tile_tokens = page_tokens, .group = 16});
  std::vector<std::byte> bytes(static_cast<std::size_t>(near.size_bytes()));
  std::int32_t const straight[] = {0, 1};
  view<C> const w{bytes.data(), near, {straight, 2}};
  REQUIRE(encode(w, x.source(), {0, 2 * page_tokens}).code == status::ok);

  rows a(heads, head_dim, 2 * page_tokens), b = a;
  REQUIRE(decode(v, a.target(), {0, 2 * page_tokens}) == status::ok);
  REQUIRE(decode(w, b.target(), {0, 2 * page_tokens}) == status::ok);
  REQUIRE(a.values == b.values);
  std::vector<float> s(heads * 2 * page_tokens), r(s.size());
  REQUIRE(gemv_qk(v, {0, 2 * page_tokens}, heads, x.values.data(), nullptr, s.data()) ==
          status::ok);
  REQUIRE(gemv_qk(w, {0, 2 * page_tokens}, heads, x.values.data(), nullptr, r.data()) ==
          status::ok);
  REQUIRE(s == r);
  // Where the offset ends up with 32 bits.
  std::int64_t const offset = far * m.codes.page_stride;
  REQUIRE(offset > std::int64_t{1} << 32);
  std::byte const* const wrapped = pool.data() + (offset & 0xFFFFFFFF);
  for (int i = 0; i < 64; ++i) REQUIRE(wrapped[i] == std::byte{0});
}

TEST_CASE("pages beyond 4 GiB") {
  using by_token = codec<symmetric<8, range::wide>, axis::token>;
  check_far_page<identity<half>>(90000, 65537);
  check_far_page<row_codec<int8_head>>(170000, 165000);
  check_far_page<by_token>(170000, 165000);
}

TEST_CASE("records beyond 4 GiB") {
  using C = row_codec<int8_head>;
  constexpr std::int64_t tokens = 5000000;
  layout const m = make_row_records<C>(heads, 128, tokens, 128);
  sparse_memory const pool(m.size_bytes());
  REQUIRE(pool.data() != nullptr);
  view<C> const v{pool.data(), m, {}};
  rows const x(heads, 128, 1, 1.0f);
  REQUIRE(encode(v, x.source(), {tokens - 1, tokens}).code == status::ok);
  std::byte const* const last = pool.data() + (tokens - 1) * 1152;
  CHECK(last[0] == std::byte{127});
  CHECK(last[1023] == std::byte{127});
  CHECK(load_parameters(v, 7, tokens - 1, 0).scale.bits == bfloat16(1.0f / 127.0f).bits);
}

}  // namespace
