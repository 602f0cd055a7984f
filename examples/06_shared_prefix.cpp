// SPDX-License-Identifier: Apache-2.0
// A paged cache: two sequences share the pages of their prefix until each writes its own.

#include <kvarts/kvarts.hpp>

#include <cstdio>
#include <random>
#include <vector>

namespace {

constexpr int prefix = 512, heads = 2, head_dim = 128;

std::vector<kvarts::half> random_rows(std::mt19937& random, int tokens) {
  std::normal_distribution<float> normal;
  std::vector<kvarts::half> rows(tokens * heads * head_dim);
  for (auto& x : rows) x = kvarts::half(normal(random));
  return rows;
}

}  // namespace

int main() {
  std::mt19937 random(1);
  auto const keys = random_rows(random, prefix);
  auto const values = random_rows(random, prefix);
  auto const rows = [](std::vector<kvarts::half> const& all, int count) {
    return kvarts::make_tensor(all.data(), heads, head_dim, count);
  };
  kvarts::calibrator calibration(heads, head_dim);
  calibration.add_keys(rows(keys, prefix));
  auto const transform = std::make_shared<kvarts::transform const>(calibration.finish());

  // [shared prefix]
  kvarts::paged_cache cache(
      kvarts::preset::k3v2,
      {.heads = heads, .key_dim = head_dim, .sequences = 4, .pages = 32, .page_tokens = 32});
  int const first = cache.add();
  cache.freeze(first, transform);
  cache.append(first, rows(keys, prefix), rows(values, prefix));

  int const second = cache.fork(first);  // no page is copied yet
  auto const after_fork = cache.free_pages();
  cache.append(first, rows(keys, 40), rows(values, 40));
  cache.append(second, rows(values, 40), rows(keys, 40));
  // [shared prefix]

  std::printf("%d + %d tokens in %d of 32 pages (%d after the fork), %d KiB in all\n",
              static_cast<int>(cache.length(first)), static_cast<int>(cache.length(second)),
              static_cast<int>(32 - cache.free_pages()), static_cast<int>(32 - after_fork),
              static_cast<int>(cache.memory_bytes() / 1024));

  auto const a = cache.view().sequence(first);
  auto const b = cache.view().sequence(second);
  std::vector<float> row_a(head_dim), row_b(head_dim);
  kvarts::decode_row(a.keys, 0, 100, row_a.data());
  kvarts::decode_row(b.keys, 0, 100, row_b.data());
  bool const ok = row_a == row_b && 32 - cache.free_pages() < 2 * (32 - after_fork);
  return ok ? 0 : 1;
}
