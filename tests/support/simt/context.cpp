// SPDX-License-Identifier: Apache-2.0
#include "support/simt/context.hpp"

#include "support/simt/sanitizers.hpp"

#include <boost/context/fixedsize_stack.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <memory>
#include <type_traits>
#include <utility>

#if defined(KVARTS_SIMT_TSAN)
/// A stack's history is faster to overwrite than to map anew; the threads that seem to run at the
/// exit need no second to end.
extern "C" char const* __tsan_default_options() {
  return "clear_shadow_mmap_threshold=1048576:atexit_sleep_ms=0";
}
#endif

namespace kvarts::kernels::simt {

namespace {

// Kernels use little stack; AddressSanitizer makes it more. ThreadSanitizer must forget who used
// it, which is fast only for memory that is allocated again for each block.
constexpr std::size_t stack_bytes = (asan ? 512 : 64) * 1024;
using stack_allocator = std::conditional_t<tsan, boost::context::fixedsize_stack,
                                           boost::context::protected_fixedsize_stack>;

void arrived(context& at) {
  finish_switch(at.fake_stack, &at.resumed_by->stack, &at.resumed_by->stack_bytes);
}

}  // namespace

void switch_context(context& from, context& to) {
  to.resumed_by = &from;
  start_switch(&from.fake_stack, to.stack, to.stack_bytes);
  switch_fiber(to.watched_as);
  std::move(to.rest).resume_with([&from](boost::context::fiber&& rest) {
    from.rest = std::move(rest);
    return boost::context::fiber();
  });
  arrived(from);
}

fiber::fiber(main_function main, void* argument) {
  unwatched const scope;
  stack_allocator allocator(simt::stack_bytes);
  auto const memory = allocator.allocate();
  stack_bytes = simt::stack_bytes;
  stack = static_cast<std::byte*>(memory.sp) - stack_bytes;
  watched_as = create_fiber();
  rest = boost::context::fiber(std::allocator_arg,
                               boost::context::preallocated(memory.sp, memory.size, memory),
                               allocator, [this, main, argument](boost::context::fiber&&) {
                                 arrived(*this);
                                 main(argument);
                                 context& next = *resumed_by;
                                 start_switch(nullptr, next.stack, next.stack_bytes);
                                 switch_fiber(next.watched_as);
                                 return std::move(next.rest);
                               });
}

fiber::~fiber() { destroy_fiber(watched_as); }

}  // namespace kvarts::kernels::simt
