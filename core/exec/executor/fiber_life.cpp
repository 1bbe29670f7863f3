// SPDX-License-Identifier: BSD-3-Clause
#include "fiber_life.h"

#include <memory>
#include <utility>
#include <vector>

#include <boost/fiber/fiber.hpp>

#include <rehearse_internal/exec/check.h>

#include "exec/fiber/fiber_table.h"
#include "exec/fiber/stack_pool.h"
#include "exec/interpose/world_state.h"
#include "pollers.h"
#include "scheduler.h"
#include "switcher.h"

namespace rehearse::exec {
namespace {

constexpr std::size_t kReleaseEndedAt = 8;

// Stacks are kept for the life of the thread, so that the next world finds warm memory.
StackPool& stack_pool(std::size_t stack_bytes) {
  thread_local std::vector<std::unique_ptr<StackPool>> pools;
  for (auto& pool : pools) {
    if (pool->stack_bytes() == stack_bytes) return *pool;
  }
  auto pool = std::make_unique<StackPool>(stack_bytes);
  for (auto& known : pools) {
    if (known->stack_bytes() == pool->stack_bytes()) return *known;
  }
  return *pools.emplace_back(std::move(pool));
}

// Remembers the stack that Boost.Fiber takes from the pool, for the overflow message and AddressSanitizer.
struct NotedStack {
  StackPool* pool;
  Fiber* fiber;

  boost::context::stack_context allocate() {
    fiber->stack = pool->take();
    fiber->asan.set_bounds(static_cast<const char*>(fiber->stack.sp) - fiber->stack.size, fiber->stack.size);
    return fiber->stack;
  }
  void deallocate(boost::context::stack_context& stack) noexcept { pool->give_back(stack); }
};

}  // namespace

FiberLife::FiberLife(WorldParts& world, RankState& state, FiberOwner& owner, LostStacks& lost_stacks)
    : world_(world),
      state_(state),
      owner_(owner),
      scheduler_(Scheduler::of_this_thread()),
      stacks_(stack_pool(world.options.stack_bytes)),
      lost_stacks_(lost_stacks.stacks) {}

Fiber& FiberLife::create(int rank, std::uint32_t fiber_of_rank, std::function<void()> work) {
  Fiber& fiber = add(rank, fiber_of_rank);
  try {
    state_.create_image(fiber.image(), rank, fiber_of_rank);
    start(fiber, std::move(work));
  } catch (...) {
    scheduler_.expect(nullptr);
    fiber.state = Fiber::State::ended;
    world_.fibers.give_back(fiber.id);
    throw;
  }
  REHEARSE_CHECK(fiber.state == Fiber::State::runnable, rank, fiber.id, fiber.state);
  ++alive_;
  return fiber;
}

// Adds the fiber to the table; it is not alive yet.
Fiber& FiberLife::add(int rank, std::uint32_t fiber_of_rank) {
  Fiber& fiber = world_.fibers.add();
  fiber.world = &world_;
  fiber.rank = rank;
  fiber.state = Fiber::State::ended;
  fiber.fiber_of_rank = fiber_of_rank;
  fiber.owner_tag = world_.interposed.tags.of(fiber.id);
  return fiber;
}

void FiberLife::start(Fiber& fiber, std::function<void()> work) {
  fiber.state = Fiber::State::blocked;
  scheduler_.expect(&fiber);
  const AsanNewStack asan(world_.switcher.current_fiber().stack_of_current());
  // `body` consists of two pointers, because Boost keeps it at the top of the stack, beside the fiber's context, and
  // rounds the size of body and context up to a multiple of 256 bytes. A third pointer would take another 256 bytes,
  // and a quarter of the stacks would then need another page.
  auto body = [&fiber, own = std::make_unique<std::function<void()>>(std::move(work))] {
    fiber.world->fiber_life.enter(fiber, *own);
  };
  static_assert(sizeof(body) <= 2 * sizeof(void*));
  boost::fibers::fiber(boost::fibers::launch::post, std::allocator_arg, NotedStack{&stacks_, &fiber}, std::move(body))
      .detach();
}

void FiberLife::enter(Fiber& fiber, std::function<void()>& work) noexcept {
  fiber.asan.enter();
  owner_.run(fiber, work);
  work = nullptr;  // in the fiber's own context, because the destructors may need it
  fiber.locals.clear();
  end(fiber);
}

void FiberLife::end(Fiber& fiber) noexcept {
  state_.end_fiber(fiber.rank, fiber.fiber_of_rank);
  world_.switcher.current_fiber().end(fiber);
  mark_ended(fiber);
  owner_.note_ended(fiber);
  ++ended_since_release_;
  if (!fiber.is_main()) world_.fibers.give_back(fiber.id);
}

void FiberLife::mark_ended(Fiber& fiber) noexcept {
  REHEARSE_CHECK(fiber.active() && alive_ > 0, fiber.rank, fiber.id, alive_);
  fiber.state = Fiber::State::ended;
  --alive_;
}

void FiberLife::leave_behind(Fiber& fiber) {
  REHEARSE_CHECK(&fiber == world_.switcher.current_fiber().current(), fiber.rank, fiber.id, fiber.state);
  mark_ended(fiber);
  owner_.note_ended(fiber);
  fiber.asan.keep(__builtin_frame_address(0));
  lost_stacks_.push_back(fiber.stack);
  world_.fibers.note_left_behind();
  // Otherwise Boost would wait for the fiber at the end of the thread.
  fiber.context->worker_unlink();
  for (;;) fiber.context->suspend();
}

void FiberLife::stop_for_ever(Fiber& fiber) noexcept {
  // Otherwise it waits in a primitive of Boost.Fiber; see give_up().
  if (fiber.state == Fiber::State::runnable || fiber.observer != nullptr) lost_stacks_.push_back(fiber.stack);
  if (fiber.state == Fiber::State::runnable) world_.switcher.withdraw(fiber);
  if (fiber.in_queue) leave_queue(fiber);
  world_.pollers.remove(fiber);
  fiber.asan.keep(reinterpret_cast<const void*>(fiber.suspended_at));
  world_.fibers.note_left_behind();
  give_up(fiber);
}

void FiberLife::give_up(Fiber& fiber) noexcept {
  REHEARSE_CHECK(fiber.state == Fiber::State::blocked && !fiber.in_queue && !fiber.polling, fiber.rank, fiber.id,
                 fiber.state, fiber.in_queue, fiber.polling);
  mark_ended(fiber);
  fiber.context->worker_unlink();  // otherwise Boost would wait for the fiber at the end of the thread
}

bool FiberLife::release_ended() {
  if (ended_since_release_ < kReleaseEndedAt && !scheduler_.has_foreign()) return false;
  ended_since_release_ = 0;
  scheduler_.run_others();
  return true;
}

}  // namespace rehearse::exec
