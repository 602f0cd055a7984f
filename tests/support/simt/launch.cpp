// SPDX-License-Identifier: Apache-2.0
// Deals the blocks of a launch out to threads of the CPU.
#include "support/simt/block.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace kvarts::kernels::simt {

namespace {

constexpr std::size_t most_shared_bytes = 227 * 1024;  // sm_90's
constexpr unsigned most_blocks_y = 65535;
constexpr std::size_t most_blocks_here = std::size_t{1} << 24;

schedule schedule_now;

/// Blocks, with the stacks of their threads, that no launch uses.
class spare_blocks {
 public:
  std::unique_ptr<block> take() {
    std::lock_guard const lock(mutex_);
    if (blocks_.empty()) return std::make_unique<block>();
    auto b = std::move(blocks_.back());
    blocks_.pop_back();
    return b;
  }
  void put(std::unique_ptr<block> b) {
    std::lock_guard const lock(mutex_);
    blocks_.push_back(std::move(b));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<block>> blocks_;
};

spare_blocks spares;

class one_launch {
 public:
  one_launch(grid blocks, place const& shape, std::function<void()> const& body)
      : blocks_(blocks), shape_(shape), body_(body) {
    auto const count = static_cast<std::size_t>(blocks.x) * blocks.y * blocks.z;
    sequence_.resize(count);
    for (std::size_t i = 0; i < count; ++i) sequence_[i] = static_cast<std::uint32_t>(i);
    if (schedule_now.how == order::reverse) std::reverse(sequence_.begin(), sequence_.end());
    if (schedule_now.how == order::random) {
      test::random_source random(schedule_now.seed);
      for (std::size_t i = count; i > 1; --i) {
        std::swap(sequence_[i - 1], sequence_[random.bits() % i]);
      }
    }
  }

  void run() {
    std::size_t const workers = std::min<std::size_t>(cpu_threads(), sequence_.size());
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < workers; ++i) others.emplace_back([this] { run_blocks(); });
    run_blocks();
    for (std::thread& other : others) other.join();
    acquire(&end_of_threads);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void run_blocks() {
    auto b = spares.take();
    try {
      for (std::size_t i = next_++; i < sequence_.size(); i = next_++) {
        b->run(place_of(sequence_[i]), schedule_now, body_);
      }
    } catch (...) {
      next_ = sequence_.size();
      std::lock_guard const lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
    spares.put(std::move(b));
  }

  place place_of(std::uint32_t index) const {
    place p = shape_;
    p.block = static_cast<int>(index % blocks_.x);
    p.block_y = static_cast<int>(index / blocks_.x % blocks_.y);
    p.block_z = static_cast<int>(index / blocks_.x / blocks_.y);
    return p;
  }

  grid blocks_;
  place shape_;
  std::function<void()> const& body_;
  std::vector<std::uint32_t> sequence_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

void check_launch(grid blocks, unsigned threads, std::size_t shared_bytes) {
  std::string wrong;
  if (threads == 0 || threads > most_threads) {
    wrong = std::to_string(threads) + " threads a block, not 1 to 1024";
  } else if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) {
    wrong = "no blocks";
  } else if (blocks.x > 0x7FFFFFFFu || blocks.y > most_blocks_y || blocks.z > most_blocks_y) {
    wrong = std::to_string(blocks.x) + " x " + std::to_string(blocks.y) + " x " +
            std::to_string(blocks.z) + " blocks, more than 2147483647 x 65535 x 65535";
  } else if (static_cast<std::size_t>(blocks.x) * blocks.y > most_blocks_here / blocks.z) {
    wrong = "more blocks than the emulator runs, 16777216";
  } else if (shared_bytes > most_shared_bytes) {
    wrong = std::to_string(shared_bytes) + " bytes of shared memory, more than 232448";
  }
  if (!wrong.empty()) throw fault_error("a launch asks for " + wrong);
  if (in_kernel()) throw fault_error("a kernel launches a kernel");
}

}  // namespace

std::uint64_t end_of_threads;

void set_schedule(schedule const& s) { schedule_now = s; }
schedule current_schedule() { return schedule_now; }

unsigned cpu_threads() {
  char const* const text = std::getenv("KVARTS_SIMT_THREADS");
  int const asked = text != nullptr ? std::atoi(text) : 0;
  return asked > 0 ? static_cast<unsigned>(asked)
                   : std::max(1u, std::thread::hardware_concurrency());
}

cudaError_t run(grid blocks, unsigned threads, std::size_t shared_bytes,
                std::function<void()> const& body) {
  check_launch(blocks, threads, shared_bytes);
  place shape;
  shape.threads = static_cast<int>(threads);
  shape.blocks = static_cast<int>(blocks.x);
  shape.shared_bytes = shared_bytes;
  one_launch(blocks, shape, body).run();
  return cudaSuccess;
}

}  // namespace kvarts::kernels::simt
