// SPDX-License-Identifier: Apache-2.0
#include "parallel.hpp"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace kvarts::tool {

void for_each_index(std::size_t count, int threads, std::function<void(std::size_t)> const& work,
                    std::function<void()> const& done) {
  std::mutex mutex;  // guards everything below
  std::size_t next = 0;
  std::exception_ptr fault;

  auto const run = [&] {
    std::unique_lock lock(mutex);
    while (next < count && !fault) {
      std::size_t const i = next++;
      lock.unlock();
      std::exception_ptr thrown;
      try {
        work(i);
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      if (thrown && !fault) fault = thrown;
      done();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(run);
    run();
  }
  if (fault) std::rethrow_exception(fault);
}

}  // namespace kvarts::tool
