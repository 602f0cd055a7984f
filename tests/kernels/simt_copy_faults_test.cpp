// SPDX-License-Identifier: Apache-2.0
// Copies to shared memory that are read too early or overwritten too soon.
#include "support/simt/planted_fault.hpp"

#include <kvarts/kernels/launch.cuh>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace kvarts::kernels;
using kvarts::kernels::simt::finder;

/// The faults of the kernels below.
enum class fault {
  none,
  no_wait,
  waits_for_older,
  no_commit,
  no_barrier,
  refills_too_soon,
  out_of_range,
  misaligned,
  wrong_parity,
  wrong_bytes,
  not_initialized,
  no_barrier_after_init
};

struct tile_source {
  static constexpr int tiles = 5;
  static constexpr int words = 4 * warp_lanes * 2;  // of a tile, 16 bytes for each of 64 threads

  tile_source() : storage(tiles * words / 4), out(tiles * words / 4) {
    for (std::size_t i = 0; i < storage.size(); ++i) {
      for (std::uint32_t& w : storage[i].w) w = static_cast<std::uint32_t>(i) + 1;
    }
  }
  std::byte const* bytes() const { return reinterpret_cast<std::byte const*>(storage.data()); }
  /// Each thread stored what the opposite thread copied.
  bool stored() const {
    for (int t = 0; t < tiles; ++t) {
      for (int i = 0; i < 64; ++i) {
        if (out[static_cast<std::size_t>(64 * t + i)] !=
            static_cast<std::uint32_t>(64 * t + 64 - i))
          return false;
      }
    }
    return true;
  }

  std::vector<words4> storage;
  std::vector<std::uint32_t> out;
};

std::uint32_t opposite(std::byte const* tile) {
  return reinterpret_cast<words4 const*>(tile)[63 - thread_index()].w[1];
}

/// Two buffers: one tile is read while the next is copied.
template <fault Fault>
KVARTS_KERNEL(64, 1)
stream(std::byte const* from, std::uint32_t* out, int tiles) {
  int const i = thread_index();
  auto const fetch = [&](int t) {
    int const at = Fault == fault::out_of_range ? 1024 * t : 1024 * (t % 2);
    int const shift = Fault == fault::misaligned ? 8 : 0;
    if (t < tiles) copy_async_16(shared_memory() + at + 16 * i + shift, from + 1024 * t + 16 * i);
    if (Fault != fault::no_commit) commit_copies();
  };
  fetch(0);
  for (int t = 0; t < tiles; ++t) {
    if (Fault == fault::refills_too_soon || t == 0) fetch(t + 1);
    if (Fault == fault::waits_for_older) {
      wait_copies<2>();
    } else if (Fault != fault::no_wait) {
      wait_copies<1>();
    }
    if (Fault != fault::no_barrier) block_barrier();
    out[64 * t + i] = opposite(shared_memory() + 1024 * (t % 2));
    if (Fault != fault::refills_too_soon) {
      block_barrier();
      fetch(t + 2);
    }
  }
}
template <fault Fault>
bool streamed() {
  tile_source source;
  launch(stream<Fault>, {.threads = 64, .shared_bytes = 2048}, nullptr, source.bytes(),
         source.out.data(), static_cast<int>(tile_source::tiles));
  return source.stored();
}

/// As `stream`, with bulk copies by one thread: `full` says that a buffer is there, `free` that all
/// threads have read it.
template <fault Fault>
KVARTS_KERNEL(64, 1)
bulk_stream(std::byte const* from, std::uint32_t* out, int tiles) {
  int const i = thread_index();
  auto* const full = reinterpret_cast<std::uint64_t*>(shared_memory());
  std::uint64_t* const free = full + 2;
  std::byte* const buffers = shared_memory() + 128;
  auto const fetch = [&](int t) {
    int const b = t % 2;
    int const shift = Fault == fault::misaligned ? 8 : 0;
    mbarrier_expect_bytes(full + b, Fault == fault::wrong_bytes ? 1040 : 1024);
    bulk_copy(buffers + 1024 * b + shift, from + 1024 * t, 1024, full + b);
  };
  if (i == 0) {
    for (int b = 0; b < 2; ++b) {
      mbarrier_init(full + b, 1);
      if (Fault != fault::not_initialized) mbarrier_init(free + b, 64);
    }
    fence_mbarrier_init();
  }
  if (Fault != fault::no_barrier_after_init) block_barrier();
  if (i == 0) {
    fetch(0);
    fetch(1);
  }
  for (int t = 0; t < tiles; ++t) {
    int const b = t % 2;
    auto const parity = static_cast<std::uint32_t>(t / 2 % 2);
    if (Fault != fault::no_wait) {
      mbarrier_wait(full + b, Fault == fault::wrong_parity ? parity ^ 1u : parity);
    }
    out[64 * t + i] = opposite(buffers + 1024 * b);
    mbarrier_arrive(free + b);
    if (i == 0 && t + 2 < tiles) {
      if (Fault != fault::refills_too_soon) mbarrier_wait(free + b, parity);
      fetch(t + 2);
    }
  }
}
template <fault Fault>
bool bulk_streamed() {
  tile_source source;
  launch(bulk_stream<Fault>, {.threads = 64, .shared_bytes = 128 + 2048}, nullptr, source.bytes(),
         source.out.data(), static_cast<int>(tile_source::tiles));
  return source.stored();
}

TEST_CASE("faults of asynchronous copies are found") {
  constexpr auto right = streamed<fault::none>;
  simt::check_planted({
      {"copies read without a wait", finder::result, streamed<fault::no_wait>, right},
      {"a wait for a group too old", finder::result, streamed<fault::waits_for_older>, right},
      {"copies that no group holds", finder::result, streamed<fault::no_commit>, right},
      {"no barrier between a wait and reading others' copies", finder::result | finder::tsan,
       streamed<fault::no_barrier>, right},
      {"a buffer filled again while others read it", finder::result | finder::tsan,
       streamed<fault::refills_too_soon>, right},
      {"a copy outside of shared memory", finder::diagnosis, streamed<fault::out_of_range>, right},
      {"a copy to a misaligned place", finder::diagnosis, streamed<fault::misaligned>, right},
  });
}

TEST_CASE("faults of bulk copies and their barriers are found") {
  constexpr auto right = bulk_streamed<fault::none>;
  simt::check_planted({
      {"bulk copies read without a wait", finder::result | finder::tsan,
       bulk_streamed<fault::no_wait>, right},
      {"an mbarrier's wrong parity", finder::result | finder::tsan,
       bulk_streamed<fault::wrong_parity>, right},
      {"an mbarrier that expects too many bytes", finder::diagnosis,
       bulk_streamed<fault::wrong_bytes>, right},
      {"an mbarrier without mbarrier_init", finder::diagnosis,
       bulk_streamed<fault::not_initialized>, right},
      {"no barrier after mbarrier_init", finder::diagnosis,
       bulk_streamed<fault::no_barrier_after_init>, right},
      {"a bulk copy before all have read the buffer", finder::result | finder::tsan,
       bulk_streamed<fault::refills_too_soon>, right},
      {"a bulk copy to a misaligned place", finder::diagnosis, bulk_streamed<fault::misaligned>,
       right},
  });
}

}  // namespace
