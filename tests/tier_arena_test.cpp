// SPDX-License-Identifier: Apache-2.0
// The pinned arena: who touches what first, pieces that are pinned and unpinned, failures that
// leave nothing behind.
#include "support/catch.hpp"

#include <kvarts/tier/pinned_arena.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;

/// Writes down what an arena asks of it.
struct recorder {
  std::mutex lock;
  std::set<int> threads;
  std::set<std::thread::id> ids;
  std::vector<std::pair<std::byte*, std::int64_t>> pinned;
  int refuse_at = -1;  ///< the piece that cannot be pinned
  std::vector<std::byte*> unpinned;

  arena_options options(int thread_count, std::int64_t piece_bytes) {
    arena_options o;
    o.piece_bytes = piece_bytes;
    o.threads = thread_count;
    o.context = this;
    o.on_thread = [](void* self, int thread) {
      auto& r = *static_cast<recorder*>(self);
      std::lock_guard const guard(r.lock);
      r.threads.insert(thread);
      r.ids.insert(std::this_thread::get_id());
    };
    o.pin = [](void* self, std::byte* data, std::int64_t bytes) {
      auto& r = *static_cast<recorder*>(self);
      if (std::ssize(r.pinned) == r.refuse_at) return false;
      r.pinned.emplace_back(data, bytes);
      return true;
    };
    o.unpin = [](void* self, std::byte* data) {
      static_cast<recorder*>(self)->unpinned.push_back(data);
    };
    return o;
  }
};

TEST_CASE("an arena is touched by all threads and pinned piece by piece") {
  recorder r;
  {
    pinned_arena arena;
    REQUIRE_FALSE(arena.allocate(100'000, r.options(3, 32'768)));
    CHECK(r.threads == std::set<int>{0, 1, 2});
    CHECK(r.ids.size() == 3);
    CHECK(arena.bytes() == 100'000);
    REQUIRE(r.pinned.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(r.pinned[i].first == arena.data() + 32'768 * i);
      CHECK(r.pinned[i].second == (i < 3 ? 32'768 : 100'000 - 3 * 32'768));
    }
    CHECK(std::all_of(arena.data(), arena.data() + arena.bytes(),
                      [](std::byte b) { return b == std::byte{0}; }));
    CHECK(reinterpret_cast<std::uintptr_t>(arena.data()) % 4096 == 0);
    pinned_arena moved = std::move(arena);
    CHECK(r.unpinned.empty());
  }
  REQUIRE(r.unpinned.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(r.unpinned[i] == r.pinned[i].first);
}

TEST_CASE("a piece that cannot be pinned leaves nothing behind") {
  for (int piece = 0; piece < 4; ++piece) {
    recorder r;
    r.refuse_at = piece;
    pinned_arena arena;
    problem const p = arena.allocate(100'000, r.options(1, 32'768));
    CHECK(p.code == status::device_failed);
    CHECK(p.second == 32'768 * piece);
    CHECK(arena.data() == nullptr);
    CHECK(r.unpinned.size() == static_cast<std::size_t>(piece));
  }
}

TEST_CASE("an arena without functions is plain memory") {
  pinned_arena arena;
  REQUIRE_FALSE(arena.allocate(1));
  arena.data()[0] = std::byte{7};
  CHECK(arena.bytes() == 1);
}

TEST_CASE("arenas that cannot be") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  pinned_arena arena;
  for (std::int64_t const bytes : {std::int64_t{0}, std::int64_t{-5}, most}) {
    CHECK(arena.allocate(bytes).first == bytes);
  }
  CHECK(arena.allocate(std::int64_t{1} << 59).code == status::no_pages);
  for (std::int64_t const piece : {std::int64_t{0}, std::int64_t{-4096}, std::int64_t{5000}}) {
    CHECK(arena.allocate(4096, {.piece_bytes = piece}).code == status::bad_alignment);
  }
  CHECK(arena.allocate(4096, {.threads = 0}).code == status::unsupported);
  CHECK(arena.data() == nullptr);
}

}  // namespace
