// SPDX-License-Identifier: BSD-3-Clause
// How fibers begin and end.
#include <memory>
#include <utility>

#include <boost/fiber/fiber.hpp>

#include <rehearse_internal/exec/throw_site.h>

#include "exec/call_site/failure_text.h"
#include "exec/fiber/native_section.h"
#include "exec/interpose/world_state.h"
#include "executor_impl.h"
#include "scheduler.h"

namespace rehearse::exec {
namespace {

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

// An exception has left a native section, and passed the destructor that ends it: callers of pthread_mutex_lock() are
// compiled for a function that does not throw.
void leave_native_code() noexcept {
  if (current_fiber() == nullptr) NativeSection::abandon();
}

}  // namespace

void RankExecutor::Impl::create_ranks() {
  try {
    for (int rank = 0; rank < options.ranks; ++rank) create_main(rank);
  } catch (...) {
    error_ = std::current_exception();
    stop(Ending::stopped, "a rank could not be created");
  }
}

void RankExecutor::Impl::create_main(int rank) {
  auto& owner = ranks_[static_cast<std::size_t>(rank)];
  if (owner.fibers == 0) owner.fibers = 1;
  owner.main = &create(rank, 0, [this, rank] { body_(rank); });
  ++mains_alive_;
}

Fiber& RankExecutor::Impl::create(int rank, std::uint32_t fiber_of_rank, std::function<void()> work) {
  Fiber& fiber = new_fiber(rank, fiber_of_rank);
  try {
    state.create_image(fiber.image(), rank, fiber.fiber_of_rank);
    fiber.state = Fiber::State::blocked;
    scheduler_->expect(&fiber);
    const AsanNewStack asan(stage_.stack_of_current());
    // Two pointers, because Boost keeps this at the top of the stack, beside its context, and rounds both up to 256
    // bytes. One pointer more takes another 256, and with them a quarter of the stacks another page.
    auto start = [&fiber, own = std::make_unique<std::function<void()>>(std::move(work))] {
      fiber.executor->enter(fiber, *own);
    };
    static_assert(sizeof(start) <= 2 * sizeof(void*));
    boost::fibers::fiber(boost::fibers::launch::post, std::allocator_arg, NotedStack{&stacks_, &fiber},
                         std::move(start))
        .detach();
  } catch (...) {
    scheduler_->expect(nullptr);
    fiber.state = Fiber::State::ended;
    fibers_.give_back(fiber.id);
    throw;
  }
  ++alive_;
  return fiber;
}

// In the table, but not alive yet.
Fiber& RankExecutor::Impl::new_fiber(int rank, std::uint32_t fiber_of_rank) {
  Fiber& fiber = fibers_.add();
  fiber.executor = this;
  fiber.rank = rank;
  fiber.state = Fiber::State::ended;
  fiber.fiber_of_rank = fiber_of_rank;
  fiber.owner_tag = interposed->tags.of(fiber.id);
  return fiber;
}

void RankExecutor::Impl::enter(Fiber& fiber, std::function<void()>& work) noexcept {
  fiber.asan.enter();
  run_body(fiber, work);
  work = nullptr;  // in the fiber's own context: what it holds may use it
  fiber.locals.clear();
  end(fiber);
}

void RankExecutor::Impl::run_body(Fiber& fiber, const std::function<void()>& work) noexcept {
  auto& rank_failed = ranks_[static_cast<std::size_t>(fiber.rank)].failed;
  RankEnd result = RankEnd::aborted;
  try {
    if (!must_end(fiber)) {
      work();
      result = RankEnd::returned;
    }
  } catch (const RankAborted&) {
    leave_native_code();
  } catch (...) {
    leave_native_code();
    // What a library makes of RankAborted on its way through is not a failure of its own.
    if (fiber.times_aborted == 0) record_failure(fiber, std::current_exception(), last_throw());
  }
  if (fiber.is_main()) outcome.note_end_of_rank(fiber.rank, rank_failed ? RankEnd::failed : result);
}

void RankExecutor::Impl::record_failure(Fiber& fiber, std::exception_ptr error, CallSite thrown_at) {
  // A choice within the rank's call: not the rank's failure, whatever libraries made of the exception on its way.
  if (decisions.failure()) return stop(Ending::stopped, "the oracle failed");
  RankFailure failure;
  failure.rank = fiber.rank;
  failure.what = failure_text(error);
  failure.error = std::move(error);
  failure.thrown_at = std::move(thrown_at);
  failure.at = clock.now();
  failure.gave_up = ranks_[static_cast<std::size_t>(fiber.rank)].gave_up;
  failure.unwinding = unwinding_now();
  outcome.note_failure(failure);
  ranks_[static_cast<std::size_t>(fiber.rank)].failed = true;
  if (sink.on_rank_failure(failure) == FailureSink::Verdict::end_world) {
    stop(Ending::rank_failed, failure.what);
    return;
  }
  // An exception that leaves a thread ends its process.
  abort_rank(fiber.rank);
}

void RankExecutor::Impl::note_given_up(int rank, const Observer& observer) {
  auto& noted = ranks_[static_cast<std::size_t>(rank)].gave_up;
  if (!noted || noted->at != clock.now()) noted = {observer.call(), observer.waits_for(), clock.now()};
}

void RankExecutor::Impl::end(Fiber& fiber) noexcept {
  state.end_fiber(fiber.rank, fiber.fiber_of_rank);
  stage_.end(fiber);
  note_ended(fiber);
  ++ended_since_release_;
  if (!fiber.is_main()) fibers_.give_back(fiber.id);
}

void RankExecutor::Impl::note_ended(Fiber& fiber) noexcept {
  fiber.state = Fiber::State::ended;
  --alive_;
  idle_policy().note_progress();
  if (!fiber.is_main()) return;
  --mains_alive_;
  failed_calls.note_progress(fiber.rank);
  outcome.note_time_of_end(fiber.rank);
  abort_rank(fiber.rank);
}

// A process that ends takes its other threads with it.
void RankExecutor::Impl::abort_rank(int rank) noexcept {
  ranks_[static_cast<std::size_t>(rank)].posted.clear();
  if (ranks_[static_cast<std::size_t>(rank)].fibers == 1) return;
  for (Fiber* const other : fibers_.all()) {
    if (!other->active() || other->rank != rank || other == stage_.current()) continue;
    other->abort = true;
    make_runnable(*other);
  }
}

Fiber& RankExecutor::Impl::spawn(int rank, std::function<void()> work) {
  idle_policy().note_progress();
  if (around_helpers_) work = [this, rank, own = std::move(work)] { around_helpers_(rank, own); };
  return create(rank, ranks_[static_cast<std::size_t>(rank)].fibers++, std::move(work));
}

void RankExecutor::Impl::post(int rank, std::function<void()> work) {
  auto& owner = ranks_[static_cast<std::size_t>(rank)];
  if (ending() || !is_alive(rank)) return;
  owner.posted.push_back(std::move(work));
  if (std::exchange(owner.posted_running, true)) return;
  spawn(rank, [this, rank] { run_posted(rank); });
}

void RankExecutor::Impl::run_posted(int rank) {
  auto& owner = ranks_[static_cast<std::size_t>(rank)];
  while (!owner.posted.empty()) {
    auto work = std::move(owner.posted.front());
    owner.posted.pop_front();
    work();
  }
  owner.posted_running = false;
}

}  // namespace rehearse::exec
