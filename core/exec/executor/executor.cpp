// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/executor.h>

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/exec/rank_of_thread.h>
#include <rehearse_internal/exec/world_number.h>

#include "exec/fiber/fiber_table.h"
#include "exec/fiber/native_section.h"
#include "exec/fiber/stack_overflow.h"
#include "exec/fiber/stack_pool.h"
#include "exec/interpose/interpose.h"
#include "exec/interpose/world_state.h"
#include "exec/monitor/debugger.h"
#include "exec/monitor/quiet.h"
#include "exec/time/patience.h"
#include "exec/time/virtual_idle_policy.h"
#include "failed_calls.h"
#include "forks.h"
#include "idle_loop.h"
#include "pollers.h"
#include "rank_life.h"
#include "rank_table.h"
#include "restarts.h"
#include "scheduler.h"
#include "switcher.h"
#include "world_outcome.h"
#include "world_parts.h"

namespace rehearse::exec {
namespace {

std::terminate_handler g_previous_terminate = nullptr;

[[noreturn]] void on_terminate() {
  // A terminate handler must not return, but need not end the process. If a fiber of a rank terminates, it stays
  // suspended forever.
  if (current_fiber() == nullptr) NativeSection::abandon();
  if (Fiber* const fiber = current_fiber()) fiber->world->rank_life.terminate(*fiber);
  if (g_previous_terminate != nullptr) g_previous_terminate();
  std::abort();
}

// From the first world on, std::terminate() in a rank's fiber (an exception reaches a noexcept function, a joinable
// std::thread is destroyed) fails that rank instead of ending the process. Elsewhere the previously installed handler
// runs.
void install_terminate_handler() {
  static const bool installed = [] {
    g_previous_terminate = std::set_terminate(on_terminate);
    return true;
  }();
  static_cast<void>(installed);
}

thread_local RankExecutor* t_executor = nullptr;
thread_local Interruption t_interrupted_again;

std::uint64_t new_world_number() noexcept {
  constinit static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

ExecutorOptions checked(ExecutorOptions options) {
  if (options.ranks < 1) {
    throw std::invalid_argument(fmt::format("ranks is {}; a world has at least 1 rank", options.ranks));
  }
  return options;
}

}  // namespace

InterruptedAgain::InterruptedAgain(Interruption place) noexcept { t_interrupted_again = place; }
InterruptedAgain::~InterruptedAgain() { t_interrupted_again = {}; }
Interruption InterruptedAgain::place() noexcept { return t_interrupted_again; }

constinit std::atomic<unsigned> interrupt_requests{0};
constinit thread_local Fiber* t_current_fiber = nullptr;
constinit thread_local Fiber* t_native_fiber = nullptr;
constinit thread_local const NativeCode* t_native_code = nullptr;

Fiber& require_fiber(const char* caller) {
  if (t_current_fiber == nullptr) {
    if (t_native_fiber != nullptr) {
      throw std::logic_error(fmt::format(
          "{} was called by rank {} in {}, in which ranks cannot wait for each other; call it outside of the {}",
          caller, t_native_fiber->rank, t_native_code->what, t_native_code->name));
    }
    throw std::logic_error(
        fmt::format("{} was called outside of a rank; it may only be called in a rank's body", caller));
  }
  return *t_current_fiber;
}

RankOfThread rank_of_thread() noexcept {
  const Fiber* const fiber = fiber_of_thread();
  return fiber != nullptr ? RankOfThread{fiber->rank, fiber->world->clock.now()} : RankOfThread{};
}

std::uint64_t world_number() noexcept {
  RankExecutor* const executor = RankExecutor::current();
  return executor != nullptr ? executor->parts().number : 0;
}

// Owns the parts of a world, and runs its main loop.
class RankExecutor::Impl {
 public:
  // `idle`: null stands for the policy of virtual time.
  Impl(ExecutorOptions options, Decisions& decisions, Clock& clock, RankState& state, FailureSink& sink,
       IdlePolicy* idle);

  RunOutcome run(const std::function<void(int)>& body);
  WorldParts& parts() noexcept { return parts_; }
  Decisions& decisions() noexcept { return decisions_; }

 private:
  void run_to_the_end();

  Decisions& decisions_;
  RankState& state_;
  VirtualIdlePolicy virtual_idle_policy_;
  LostStacks lost_stacks_;
  WorldParts parts_;  // refers to the members below, except idle_loop_, and to the policy
  TimerQueue timers_;
  Patience patience_;
  interpose::WorldState interposed_;
  WorldOutcome outcome_;
  Pollers pollers_;
  FailedCalls failed_calls_;
  RankTable ranks_;
  RankLife rank_life_;
  Restarts restarts_;
  FiberTable fibers_;
  Switcher switcher_;
  FiberLife fiber_life_;
  IdleLoop idle_loop_;
};

RankExecutor::Impl::Impl(ExecutorOptions options, Decisions& decisions, Clock& clock, RankState& state,
                         FailureSink& sink, IdlePolicy* idle)
    : decisions_(decisions),
      state_(state),
      virtual_idle_policy_({.poll_cost = options.poll_cost,
                            .polls = options.idle_polls_max,
                            .timed_polls = options.idle_timed_polls_max}),
      parts_{.options = checked(options),
             .number = new_world_number(),
             .process = getpid(),
             .clock = clock,
             .timers = timers_,
             .patience = patience_,
             .idle_policy = idle != nullptr ? *idle : virtual_idle_policy_,
             .outcome = outcome_,
             .pollers = pollers_,
             .failed_calls = failed_calls_,
             .fibers = fibers_,
             .ranks = ranks_,
             .switcher = switcher_,
             .fiber_life = fiber_life_,
             .rank_life = rank_life_,
             .restarts = restarts_,
             .interposed = interposed_},
      patience_(options.patience),
      outcome_(clock, options.ranks),
      failed_calls_(options.ranks),
      ranks_(options.ranks),
      rank_life_(parts_, decisions, sink),
      restarts_(parts_),
      switcher_(parts_, decisions, state, [this] { idle_loop_.poll(); }),
      fiber_life_(parts_, state, rank_life_, lost_stacks_),
      idle_loop_(parts_) {}

RunOutcome RankExecutor::Impl::run(const std::function<void(int)>& body) {
  interpose::require_installed();
  const StackOverflowGuard overflow_guard(parts_.options.stack_bytes);
  install_terminate_handler();
  note_forks();
  const WatchedRun watched(outcome_.switches());
  CurrentFiber& current_fiber = switcher_.current_fiber();
  if (current_fiber.is_open()) throw std::logic_error("RankExecutor::run() was called twice; make another executor");
  current_fiber.open();
  fibers_.prepare(state_.image_bytes(), static_cast<std::size_t>(parts_.options.ranks));
  Scheduler& scheduler = Scheduler::of_this_thread();
  scheduler.switcher = &switcher_;
  switcher_.begin();
  const DebuggerView debugger(&fibers_.all(), current_fiber.address_of_current());
  rank_life_.begin_all(body);
  run_to_the_end();
  scheduler.switcher = nullptr;
  scheduler.run_others();
  if (decisions_.failure()) std::rethrow_exception(decisions_.failure());
  return outcome_.take();
}

void RankExecutor::Impl::run_to_the_end() {
  while (fiber_life_.alive() > 0 || restarts_.are_awaited()) {
    if (!ranks_.any_alive() && !restarts_.are_awaited()) outcome_.end(Ending::all_returned, {});
    switcher_.stop_between_switches();
    if (outcome_.ended()) {
      restarts_.call_off();
      rank_life_.unwind_all();
    } else if (switcher_.take_time_chosen()) {
      idle_loop_.pass_time();
    } else if (switcher_.any_runnable()) {
      switcher_.resume_fibers();
    } else {
      idle_loop_.step();
    }
  }
  outcome_.end(Ending::all_returned, {});
}

RankExecutor::RankExecutor(ExecutorOptions options, Decisions& decisions, Clock& clock, RankState& state,
                           FailureSink& sink)
    : impl_(std::make_unique<Impl>(options, decisions, clock, state, sink, nullptr)) {}

RankExecutor::RankExecutor(ExecutorOptions options, Decisions& decisions, Clock& clock, RankState& state,
                           FailureSink& sink, IdlePolicy& idle)
    : impl_(std::make_unique<Impl>(options, decisions, clock, state, sink, &idle)) {}

RankExecutor::~RankExecutor() = default;

RunOutcome RankExecutor::run(const std::function<void(int)>& body) {
  if (t_executor != nullptr) throw std::logic_error("a world is running on this thread already; worlds do not nest");
  struct Scope {
    explicit Scope(RankExecutor* executor) { t_executor = executor; }
    ~Scope() { t_executor = nullptr; }
  } scope(this);
  return impl_->run(body);
}

void RankExecutor::post(int rank, std::function<void()> work) { parts().rank_life.post(rank, std::move(work), false); }
void RankExecutor::post_after_all(int rank, std::function<void()> work) {
  parts().rank_life.post(rank, std::move(work), true);
}
bool RankExecutor::has_posted(int rank) noexcept { return parts().rank_life.has_posted(rank); }
std::uint32_t RankExecutor::spawn(std::function<void()> work) {
  const int rank = require_fiber("RankExecutor::spawn()").rank;
  return parts().rank_life.spawn(rank, std::move(work)).fiber_of_rank;
}
void RankExecutor::do_helpers_work_by(std::function<void(int, const std::function<void()>&)> around) {
  parts().rank_life.do_helpers_work_by(std::move(around));
}
void RankExecutor::stop(std::string reason) { parts().outcome.end(Ending::stopped, std::move(reason)); }
bool RankExecutor::ending() const noexcept { return impl_->parts().outcome.ended(); }
void RankExecutor::note_progress() noexcept {
  parts().idle_policy.note_progress();
  const Fiber* const fiber = current_fiber();
  parts().failed_calls.note_progress(fiber != nullptr ? fiber->rank : -1);
}
void RankExecutor::note_step() noexcept { parts().idle_policy.note_step(); }
void RankExecutor::note_given_up(int rank, const Observer& observer) {
  parts().ranks.note_given_up(rank, observer, clock().now());
}
void RankExecutor::explain_waits_by(const WaitExplainer* explainer) noexcept {
  parts().outcome.explain_waits_by(explainer);
}
TimerQueue& RankExecutor::timers() noexcept { return parts().timers; }
Clock& RankExecutor::clock() noexcept { return parts().clock; }
Decisions& RankExecutor::decisions() noexcept { return impl_->decisions(); }
const ExecutorOptions& RankExecutor::options() const noexcept { return impl_->parts().options; }
WorldParts& RankExecutor::parts() noexcept { return impl_->parts(); }
RankExecutor* RankExecutor::current() noexcept { return t_executor; }

}  // namespace rehearse::exec
