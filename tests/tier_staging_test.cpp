// SPDX-License-Identifier: Apache-2.0
// Staging is bounded: memory that is not there makes slices smaller or fewer, events are given
// back, and the host never waits for a slice.
#include "support/catch.hpp"
#include "support/scripted_device.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using namespace kvarts::test;

TEST_CASE("an allocation that fails is tried again at half the size") {
  std::vector<std::byte> memory(1 << 20);
  std::vector<std::int64_t> asked;
  auto const allocate = [&](std::int64_t bytes) -> std::byte* {
    asked.push_back(bytes);
    return bytes <= 300'000 ? memory.data() : nullptr;
  };
  auto const found = allocate_staging(allocate, 4, 1 << 20, 4096);
  CHECK(asked == std::vector<std::int64_t>{4 << 20, 2 << 20, 1 << 20, 1 << 19, 1 << 18});
  CHECK(found.data == memory.data());
  CHECK(found.bytes == 1 << 18);

  auto const nothing =
      allocate_staging([](std::int64_t) -> std::byte* { return nullptr; }, 4, 1 << 20, 4096);
  CHECK(nothing.data == nullptr);
  CHECK(nothing.bytes == 0);
}

TEST_CASE("a ring divides the caller's memory and gives its events back") {
  std::vector<std::byte> memory(10'000);
  scripted_device d(1);
  {
    staging_ring<scripted_device> ring(d, {memory.data(), 10'000}, 4);
    CHECK(ring.slices() == 4);
    CHECK(ring.slice_bytes() == 2304);  // 10000 / 4, down to a multiple of 256
    for (int i = 0; i < 4; ++i) CHECK(ring.slice(i).data == memory.data() + i * 2304);
    CHECK(d.live_events == 8);
  }
  CHECK(d.live_events == 0);
  for (int const slices : {0, -1, 40}) {
    staging_ring<scripted_device> ring(d, {memory.data(), 10'000}, slices);
    CHECK(ring.slices() == (slices == 40 ? 16 : 0));
  }
  staging_ring<scripted_device> small(d, {memory.data(), 1000}, 4);
  CHECK(small.slices() == 0);
  staging_ring<scripted_device> none(d, {}, 4);
  CHECK(none.slices() == 0);
  CHECK(d.live_events == 0);
}

TEST_CASE("a device without enough events makes the ring shorter, or a mover not ready") {
  std::vector<std::byte> memory(10'000);
  for (int events = 0; events < 9; ++events) {
    scripted_device d(1);
    d.events_left = events;
    {
      staging_ring<scripted_device> ring(d, {memory.data(), 10'000}, 4);
      CHECK(ring.slices() == events / 2);
      page_mover<scripted_device> mover(d, ring);
      CHECK(mover.ready() == (events > 2 && events % 2 == 1));
      layer_events<scripted_device> layers(d, 1, 1);
      CHECK_FALSE(layers.ready());
    }
    CHECK(d.live_events == 0);
  }
}

TEST_CASE("slices come round, and the stream waits for each one's last use") {
  std::vector<std::byte> memory(3 * 256);
  scripted_device d(1);
  staging_ring<scripted_device> ring(d, {memory.data(), 3 * 256}, 3);
  enqueuer<scripted_device> q(d);
  for (int i = 0; i < 7; ++i) {
    auto const& s = ring.acquire(q, 0);
    CHECK(&s == &ring.slice(i % 3));
    CHECK(d.waits == i + 1);
    q.record(s.last_use, 1);
  }
  CHECK_FALSE(q.result());
}

}  // namespace
