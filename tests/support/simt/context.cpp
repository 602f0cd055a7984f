// SPDX-License-Identifier: Apache-2.0
#include <boost/context/protected_fixedsize_stack.hpp>
#include <memory>
#include <support/simt/context.hpp>
#include <support/simt/sanitizers.hpp>
#include <utility>

namespace kvarts::kernels::simt {

namespace {

// Kernels use little stack; sanitizers' reports, which run on it too, more.
constexpr std::size_t stack_bytes = (asan || tsan ? 256 : 64) * 1024;

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
  boost::context::protected_fixedsize_stack allocator(simt::stack_bytes);
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
