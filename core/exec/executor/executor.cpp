// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/executor.h>

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/exec/rank_of_thread.h>

#include "exec/fiber/stack_overflow.h"
#include "exec/interpose/interpose.h"
#include "exec/interpose/world_state.h"
#include "exec/monitor/debugger.h"
#include "exec/monitor/watchdog.h"
#include "executor_impl.h"
#include "forks.h"
#include "restart.h"
#include "scheduler.h"
#include "terminate.h"

namespace rehearse::exec {
namespace {

thread_local RankExecutor* t_executor = nullptr;
thread_local Interruption t_interrupted_again;

// Stacks are kept for the life of the thread: the next world finds them warm.
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

constinit std::atomic<bool> interrupt_flag{false};
constinit thread_local Fiber* t_current_fiber = nullptr;
constinit thread_local Fiber* t_native_fiber = nullptr;
constinit thread_local const NativePlace* t_native_place = nullptr;

Fiber& require_fiber(const char* caller) {
  if (t_current_fiber == nullptr) {
    if (t_native_fiber != nullptr) {
      throw std::logic_error(fmt::format(
          "{} was called by rank {} in {}, in which ranks cannot wait for each other; call it outside of the {}",
          caller, t_native_fiber->rank, t_native_place->what, t_native_place->name));
    }
    throw std::logic_error(
        fmt::format("{} was called outside of a rank; it may only be called in a rank's body", caller));
  }
  return *t_current_fiber;
}

RankOfThread rank_of_thread() noexcept {
  const Fiber* const fiber = fiber_of_thread();
  return fiber != nullptr ? RankOfThread{fiber->rank, fiber->executor->clock.now()} : RankOfThread{};
}

RankExecutor::Impl::Impl(ExecutorOptions options_in, Decisions& decisions_in, Clock& clock_in, RankState& state_in,
                         FailureSink& sink_in, IdlePolicy* idle)
    : options(checked(options_in)),
      decisions(decisions_in),
      clock(clock_in),
      state(state_in),
      sink(sink_in),
      outside(clock.passes_by_itself() ? std::make_shared<Outside>() : nullptr),
      interposed(std::make_unique<interpose::WorldState>()),
      outcome(clock_in, options.ranks),
      failed_calls(options.ranks),
      virtual_idle_policy_({.look_cost = options.look_cost,
                            .looks = options.idle_looks_max,
                            .timed_looks = options.idle_timed_looks_max}),
      idle_policy_(idle != nullptr ? idle : &virtual_idle_policy_),
      ranks_(static_cast<std::size_t>(options.ranks)),
      stage_(state_in),
      scheduler_(&Scheduler::of_this_thread()),
      stacks_(stack_pool(options.stack_bytes)) {
  set_next_stop(0);
}

RankExecutor::Impl::~Impl() {
  if (outside != nullptr) outside->close();
}

RunOutcome RankExecutor::Impl::run(const std::function<void(int)>& body) {
  interpose::require_installed();
  const StackOverflowGuard overflow_guard(options.stack_bytes);
  install_terminate_handler();
  note_forks();
  const WatchedRun watched(outcome.switches());
  if (stage_.is_open()) throw std::logic_error("RankExecutor::run() was called twice; make another executor");
  stage_.open();
  fibers_.prepare(state.image_bytes(), ranks_.size());
  scheduler_->executor = this;
  const DebuggerView debugger(&fibers_.all(), stage_.place_of_current());
  body_ = body;
  create_ranks();
  while (alive_ > 0 || awaits_restarts()) {
    if (mains_alive_ == 0 && !awaits_restarts()) stop(Ending::all_returned, {});
    stop_between_switches();
    if (ending()) {
      call_off_restarts();
      finish_world();
    } else if (!runnable_.empty()) {
      resume_fibers();
    } else {
      idle();
    }
  }
  scheduler_->executor = nullptr;
  if (outside != nullptr) outside->close();
  stop(Ending::all_returned, {});
  scheduler_->run_others();
  if (decisions.failure()) std::rethrow_exception(decisions.failure());
  if (error_) std::rethrow_exception(error_);
  return outcome.take();
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

void RankExecutor::post(int rank, std::function<void()> work) { impl_->post(rank, std::move(work)); }
std::uint32_t RankExecutor::spawn(std::function<void()> work) {
  return impl_->spawn(require_fiber("RankExecutor::spawn()").rank, std::move(work)).fiber_of_rank;
}
void RankExecutor::do_helpers_work_by(std::function<void(int, const std::function<void()>&)> around) {
  impl_->do_helpers_work_by(std::move(around));
}
void RankExecutor::stop(std::string reason) { impl_->stop(Ending::stopped, std::move(reason)); }
bool RankExecutor::ending() const noexcept { return impl_->ending(); }
void RankExecutor::note_progress() noexcept {
  impl_->idle_policy().note_progress();
  const Fiber* const fiber = current_fiber();
  impl_->failed_calls.note_progress(fiber != nullptr ? fiber->rank : -1);
}
void RankExecutor::note_step() noexcept { impl_->idle_policy().note_step(); }
void RankExecutor::note_given_up(int rank, const Observer& observer) { impl_->note_given_up(rank, observer); }
void RankExecutor::explain_waits_by(const WaitExplainer* explainer) noexcept {
  impl_->outcome.explain_waits_by(explainer);
}
TimerQueue& RankExecutor::timers() noexcept { return impl_->timers; }
Clock& RankExecutor::clock() noexcept { return impl_->clock; }
Decisions& RankExecutor::decisions() noexcept { return impl_->decisions; }
const ExecutorOptions& RankExecutor::options() const noexcept { return impl_->options; }
RankExecutor* RankExecutor::current() noexcept { return t_executor; }

}  // namespace rehearse::exec
