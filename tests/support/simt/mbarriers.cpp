// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory that count arrivals and the bytes of bulk copies.
#include "support/simt/block.hpp"
#include "support/simt/copies.hpp"

#include <algorithm>
#include <cstring>

namespace kvarts::kernels::simt {

namespace {

constexpr std::uint32_t most_arrivals = 0x7FFF;
constexpr std::uint32_t unit = 16;  // of bulk copies

/// What its 8 bytes hold here. A phase ends when nothing is pending; poison is no barrier.
struct mbarrier {
  std::uint16_t phase;
  std::uint16_t arrivals;  // of each phase
  std::uint16_t pending_arrivals;
  std::int16_t pending_units;
};
static_assert(sizeof(mbarrier) == sizeof(std::uint64_t));

mbarrier load(std::uint64_t const* at) {
  check_shared(at, sizeof *at, sizeof *at, "uses an mbarrier");
  note_read(at, sizeof *at);
  mbarrier b;
  unwatched const scope;
  std::memcpy(&b, at, sizeof b);
  if (b.arrivals == 0 || b.arrivals > most_arrivals)
    fault("uses an mbarrier without mbarrier_init");
  return b;
}

void store(std::uint64_t* at, mbarrier const& b) {
  unwatched const scope;
  std::memcpy(at, &b, sizeof b);
}

/// Stands for the end of the phases of a parity. (ThreadSanitizer tells any two addresses apart.)
void* end_of_phase(std::uint64_t* at, std::uint32_t parity) {
  return reinterpret_cast<std::byte*>(at) + (parity & 1u);
}

/// Ends the phase when nothing is pending, `copies_arrive` or not.
void progress(std::uint64_t* at, bool copies_arrive) {
  unwatched const scope;
  block& all = current_block();
  mbarrier b = load(at);
  if (copies_arrive) {
    std::erase_if(all.bulk_copies(), [&](bulk_copy_under_way const& c) {
      if (c.barrier != at) return false;
      std::memcpy(c.to, c.from, c.bytes);
      b.pending_units = static_cast<std::int16_t>(b.pending_units - c.bytes / unit);
      return true;
    });
  }
  if (b.pending_arrivals == 0 && b.pending_units == 0) {
    b.phase ^= 1;
    b.pending_arrivals = b.arrivals;
    all.wake_waiters(at);
  }
  store(at, b);
}

}  // namespace

bool block::deliver_bulk_copies() {
  for (bulk_copy_under_way const& c : bulk_copies_) {
    bool const awaited = std::any_of(threads_.begin(), threads_.begin() + count_,
                                     [&](auto const& t) { return t->waits_for == c.barrier; });
    if (!awaited) continue;
    progress(c.barrier, true);
    return true;
  }
  return false;
}

void block::wake_waiters(std::uint64_t const* barrier) {
  for (int i = 0; i < count_; ++i) {
    gpu_thread& t = *threads_[static_cast<std::size_t>(i)];
    if (t.waits_for != barrier) continue;
    t.waits_for = nullptr;
    wake(t);
  }
}

void mbarrier_init(std::uint64_t* barrier, std::uint32_t arrivals) {
  current_block();
  check_shared(barrier, sizeof *barrier, sizeof *barrier, "initializes an mbarrier");
  if (arrivals == 0 || arrivals > most_arrivals) {
    fault(("initializes an mbarrier with " + std::to_string(arrivals) + " arrivals").c_str());
  }
  note_write(barrier, sizeof *barrier);
  auto const count = static_cast<std::uint16_t>(arrivals);
  store(barrier, {0, count, count, 0});
}

void mbarrier_arrive(std::uint64_t* barrier, std::uint32_t expected_bytes) {
  if (expected_bytes % unit != 0) fault("expects bytes that are not a multiple of 16");
  if (load(barrier).pending_arrivals == 0) progress(barrier, true);
  mbarrier b = load(barrier);
  if (b.pending_arrivals == 0) fault("arrives at an mbarrier once too often");
  --b.pending_arrivals;
  b.pending_units = static_cast<std::int16_t>(b.pending_units + expected_bytes / unit);
  store(barrier, b);
  release(end_of_phase(barrier, b.phase));
  progress(barrier, false);
}

void mbarrier_wait(std::uint64_t* barrier, std::uint32_t parity, std::source_location at) {
  block& all = current_block();
  gpu_thread& t = all.running();
  auto const is_over = [&] { return load(barrier).phase != (parity & 1u); };
  while (!is_over()) {
    t.waits_for = barrier;
    all.suspend({"mbarrier_wait", at});
  }
  acquire(end_of_phase(barrier, parity));
}

void bulk_copy(std::byte* shared, std::byte const* global, std::uint32_t bytes,
               std::uint64_t* barrier) {
  check_shared(shared, bytes, unit, "copies");
  check_global(global, unit);
  if (bytes % unit != 0) fault("copies bytes in bulk that are not a multiple of 16");
  note_read(global, bytes);
  poison(shared, bytes);
  release(end_of_phase(barrier, load(barrier).phase));
  {
    unwatched const scope;
    current_block().bulk_copies().push_back({shared, global, bytes, barrier});
  }
}

}  // namespace kvarts::kernels::simt
