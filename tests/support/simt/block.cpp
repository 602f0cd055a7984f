// SPDX-License-Identifier: Apache-2.0
#include "support/simt/block.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

namespace kvarts::kernels::simt {

constinit thread_local place here;

namespace {

constinit thread_local block* running_block = nullptr;

/// Unwinds the other threads of a block that has failed.
struct stopped {};

std::uint32_t bit_of(int thread) { return 1u << (thread % warp_lanes); }

std::string name_of(place const& p) {
  std::string text = "block " + std::to_string(p.block);
  if (p.block_y != 0 || p.block_z != 0) {
    text += "," + std::to_string(p.block_y) + "," + std::to_string(p.block_z);
  }
  return text;
}

std::string thread_name(int index) { return "thread " + std::to_string(index); }

}  // namespace

bool call::operator==(call const& other) const {
  return name == other.name && at.line() == other.at.line() && at.column() == other.at.column() &&
         (at.file_name() == other.at.file_name() ||
          std::strcmp(at.file_name(), other.at.file_name()) == 0);
}

std::string call::text() const {
  std::string const file = at.file_name();
  return std::string(name) + " (" + file.substr(file.rfind('/') + 1) + ":" +
         std::to_string(at.line()) + ")";
}

bool in_kernel() { return running_block != nullptr; }

block& current_block() {
  if (!in_kernel()) throw fault_error("a kernel's primitive is called outside of kernels");
  return *running_block;
}

void fault(char const* what) {
  current_block();
  throw fault_error(name_of(here) + ", " + thread_name(here.thread) + " " + what);
}

gpu_thread& block::running() { return *threads_[static_cast<std::size_t>(here.thread)]; }

void block::run(place const& where, schedule const& order, std::function<void()> const& body) {
  prepare(where, order);
  body_ = &body;
  running_block = this;
  while (alive_ > 0) {
    if (ready_warps_ != 0) {
      switch_context(main_, next());
    } else if (!deliver_bulk_copies()) {
      stop(deadlock());
    }
  }
  running_block = nullptr;
  if (tsan) retire_fibers();  // a thread of the next block is another thread
  std::string const damage = memory_->damage();
  memory_.reset();
  if (failure_) {
    acquire(&failure_);
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  if (!damage.empty()) throw fault_error(name_of(where) + " " + damage);
}

void block::prepare(place const& where, schedule const& order) {
  memory_.emplace(where.shared_bytes);
  here = where;
  here.shared = memory_->data();
  main_.watched_as = running_fiber();
  order_ = order.how;
  random_ = test::random_source(order.seed + static_cast<std::uint64_t>(where.block) +
                                (static_cast<std::uint64_t>(where.block_y) << 24) +
                                (static_cast<std::uint64_t>(where.block_z) << 44));
  count_ = alive_ = where.threads;
  arrived_ = 0;
  phase_ = 0;
  bulk_copies_.clear();
  ready_warps_ = 0;
  for (int first = 0; first < count_; first += warp_lanes) {
    int const lanes = std::min(warp_lanes, count_ - first);
    warp& w = warp_of(first);
    w = {};
    w.existing = w.alive = w.ready = all_lanes >> (warp_lanes - lanes);
    ready_warps_ |= 1u << (first / warp_lanes);
  }
  add_threads();
}

void block::add_threads() {
  while (static_cast<int>(threads_.size()) < count_) {
    threads_.push_back(std::make_unique<gpu_thread>());
    threads_.back()->of = this;
    threads_.back()->index = static_cast<int>(threads_.size()) - 1;
  }
  for (int i = 0; i < count_; ++i) {
    gpu_thread& t = *threads_[static_cast<std::size_t>(i)];
    t.waits_for = nullptr;
    t.copies.clear();
    t.committed_groups = 0;
    t.has_fenced = false;
    std::fill(std::begin(t.atomics), std::end(t.atomics), nullptr);
    if (!t.stack) t.stack.emplace(thread_main, &t);
  }
}

void block::thread_main(void* argument) {
  gpu_thread& t = *static_cast<gpu_thread*>(argument);
  while (!t.of->retiring_) {
    t.of->run_thread(t);
    switch_context(*t.stack, t.of->next());
  }
}

// Not inlined: thread_main may go on in another thread of the CPU, with another `here`.
[[gnu::noinline]] void block::run_thread(gpu_thread& t) {
  here.thread = t.index;
  std::exception_ptr failure;
  try {
    if (!failure_) {
      (*body_)();
      leave(t);
    }
  } catch (stopped const&) {
  } catch (...) {
    failure = std::current_exception();
  }
  release(&end_of_threads);
  warp_of(t.index).alive &= ~bit_of(t.index);
  --alive_;
  if (failure) stop(std::move(failure));
}

void block::leave(gpu_thread const& t) {
  warp const& w = warp_of(t.index);
  std::string what;
  if (w.arrived != 0) {
    int const lane = std::countr_zero(w.arrived);
    what = thread_name(t.index / warp_lanes * warp_lanes + lane) + " waits in " + w.meeting.text();
  } else if (arrived_ != 0) {
    what = thread_name(first_arrived_) + " waits in " + meeting_.text();
  }
  if (!what.empty()) fault(("ends while " + what).c_str());
}

void block::stop(std::exception_ptr why) {
  if (failure_) return;
  failure_ = std::move(why);
  release(&failure_);
  for (int i = 0; i < count_; ++i) {
    if ((warp_of(i).alive & bit_of(i)) != 0) wake(*threads_[static_cast<std::size_t>(i)]);
  }
}

std::exception_ptr block::deadlock() const {
  std::string text = name_of(here) + " is deadlocked:";
  call const* last = nullptr;
  for (int i = 0; i < count_; ++i) {
    gpu_thread const& t = *threads_[static_cast<std::size_t>(i)];
    bool const alive = (warps_[i / warp_lanes].alive & bit_of(i)) != 0;
    if (!alive || (last != nullptr && *last == t.waits_in)) continue;
    text += (last != nullptr ? ", " : " ") + thread_name(i) + " waits in " + t.waits_in.text();
    last = &t.waits_in;
  }
  return std::make_exception_ptr(fault_error(text));
}

context& block::next() {
  if (ready_warps_ == 0) return main_;
  int const w = pick(ready_warps_);
  int const lane = pick(warps_[w].ready);
  warps_[w].ready &= ~(1u << lane);
  if (warps_[w].ready == 0) ready_warps_ &= ~(1u << w);
  return *threads_[static_cast<std::size_t>(w * warp_lanes + lane)]->stack;
}

int block::pick(std::uint32_t set) {
  if (order_ == order::forward) return std::countr_zero(set);
  if (order_ == order::reverse) return 31 - std::countl_zero(set);
  int const start = static_cast<int>(random_.bits() % 32);
  return (std::countr_zero(std::rotr(set, start)) + start) % 32;
}

void block::suspend(call const& c) {
  gpu_thread& t = running();
  t.waits_in = c;
  switch_context(*t.stack, next());
  here.thread = t.index;
  if (failure_) throw stopped();
}

void block::wake(gpu_thread const& t) {
  warp_of(t.index).ready |= bit_of(t.index);
  ready_warps_ |= 1u << (t.index / warp_lanes);
}

void block::retire_fibers() {
  unwatched const scope;
  retiring_ = true;
  main_.watched_as = running_fiber();
  for (auto const& t : threads_) {
    if (!t->stack) continue;
    switch_context(main_, *t->stack);
    t->stack.reset();
  }
  retiring_ = false;
}

}  // namespace kvarts::kernels::simt
