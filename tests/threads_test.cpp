// SPDX-License-Identifier: Apache-2.0
// Calls share no state: threads on different sequences get the bytes that one thread gets.
#include "support/catch.hpp"
#include "support/rows.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <thread>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;

using by_token = codec<symmetric<3, range::searched>, axis::token>;
using rows4 = row_codec<midrise<4>>;
constexpr int heads = 2, head_dim = 80;

/// Encodes and multiplies `rounds` times; the last products.
template <class C>
std::vector<float> work(view<C> v, rows const& x, int rounds) {
  std::vector<float> output(heads * head_dim);
  std::vector<float> scores(static_cast<std::size_t>(heads * x.tokens));
  transform_view const t{nullptr, nullptr, 0, {1, 1}};
  for (int i = 0; i < rounds; ++i) {
    bool ok = encode(v, x.source(), {0, x.tokens}, t).code == status::ok;
    ok = ok &&
         gemv_qk(v, {0, x.tokens}, heads, x.values.data(), nullptr, scores.data()) == status::ok;
    ok = ok && gemv_pv(v, {0, x.tokens}, heads, scores.data(), output.data()) == status::ok;
    if (!ok) output.clear();
  }
  return output;
}

/// Pages of one pool, alternating between `count` sequences of two pages.
template <class C>
void check_threads(int count, int rounds) {
  constexpr int page_tokens = 32;
  layout const m = make_pages<C>(heads, head_dim, 2 * count, page_tokens, {.alignment = 2});
  std::vector<std::byte> together(static_cast<std::size_t>(m.size_bytes())), alone = together;
  std::vector<rows> inputs;
  std::vector<std::int32_t> pages;
  random_source random(test_seed());
  for (int i = 0; i < count; ++i) {
    inputs.push_back(
        normal_rows(random, heads, head_dim, 1 + random.between(0, 2 * page_tokens - 1)));
    pages.push_back(i);
    pages.push_back(2 * count - 1 - i);
  }
  auto const sequence = [&](std::vector<std::byte>& pool, int i) {
    return view<C>{pool.data(), m, {pages.data() + 2 * i, 2}};
  };
  std::vector<std::vector<float>> found(static_cast<std::size_t>(count)), expected = found;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      auto const k = static_cast<std::size_t>(i);
      found[k] = work(sequence(together, i), inputs[k], rounds);
    });
  }
  for (auto& thread : threads) thread.join();
  for (int i = 0; i < count; ++i) {
    auto const k = static_cast<std::size_t>(i);
    expected[k] = work(sequence(alone, i), inputs[k], 1);
    REQUIRE_FALSE(expected[k].empty());
  }
  CHECK(found == expected);
  CHECK(together == alone);
}

TEST_CASE("two threads on two sequences of one pool") {
  check_threads<by_token>(2, 30);
  check_threads<rows4>(2, 30);
}

TEST_CASE("64 threads on any number of cores finish") {
  check_threads<by_token>(64, 2);
  check_threads<rows4>(64, 2);
}

}  // namespace
