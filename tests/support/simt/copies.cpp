// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies to shared memory. What is under way is poisoned, and arrives only when its
// thread waits for it, which is as late as on any device.
#include "support/simt/copies.hpp"

#include "support/simt/block.hpp"

#include <algorithm>
#include <cstring>

namespace kvarts::kernels::simt {

namespace {

void write(std::byte* to, void const* from, std::size_t bytes) {
  note_write(to, bytes);
  unwatched const scope;
  std::memcpy(to, from, bytes);
}

}  // namespace

void check_shared(void const* at, std::size_t bytes, std::size_t alignment, char const* what) {
  auto const address = reinterpret_cast<std::uintptr_t>(at);
  auto const offset = address - reinterpret_cast<std::uintptr_t>(here.shared);
  if (offset > here.shared_bytes || bytes > here.shared_bytes - offset) {
    fault((std::string(what) + " outside of its " + std::to_string(here.shared_bytes) +
           " bytes of shared memory")
              .c_str());
  }
  if (address % alignment != 0) {
    fault((std::string(what) + " at byte " + std::to_string(offset) +
           " of shared memory, not a multiple of " + std::to_string(alignment))
              .c_str());
  }
}

void poison(std::byte* at, std::size_t bytes) {
  note_write(at, bytes);
  unwatched const scope;
  std::memset(at, block_memory::poison, bytes);
}

void copy_async(std::byte* shared, words4 const& data) {
  gpu_thread& t = current_block().running();
  check_shared(shared, sizeof data, sizeof data, "copies");
  poison(shared, sizeof data);
  unwatched const scope;
  t.copies.push_back({shared, data, t.committed_groups});
}

void commit_copies() { ++current_block().running().committed_groups; }

void wait_copies(int pending) {
  gpu_thread& t = current_block().running();
  auto const waits_for = [&](copy_under_way const& c) {
    return c.group < t.committed_groups - pending;
  };
  for (copy_under_way const& c : t.copies) {
    if (waits_for(c)) write(c.to, &c.data, sizeof c.data);
  }
  unwatched const scope;
  std::erase_if(t.copies, waits_for);
}

}  // namespace kvarts::kernels::simt
