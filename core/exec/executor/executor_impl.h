// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/exec/executor.h>
#include <unistd.h>

#include "exec/fiber/fiber_table.h"
#include "exec/fiber/stack_pool.h"
#include "run_queue.h"
#include "scheduler.h"

namespace rehearse::exec {

namespace interpose {
struct WorldState;
}

// From the first world on, a process that a rank forks is ended when it comes to a switch.
void note_forks();

// The executor's inside. The thread's main context is the scheduler's own context ("the host"): it sleeps in
// run() while fibers run, and is resumed when none can, to fire timers, let time pass, or end the world.
std::uint64_t new_world_number() noexcept;

class RankExecutor::Impl {
 public:
  Impl(ExecutorOptions options, Decisions& decisions, Clock& clock, RankState& state, FailureSink& sink);
  ~Impl();

  RunOutcome run(const std::function<void(int)>& body);
  void post(int rank, std::function<void()> work);
  Fiber& spawn(int rank, std::function<void()> work);
  void stop(Ending ending, std::string reason) noexcept;

  // The next context to run; the host when no fiber can. Called by Boost.Fiber in a context that it takes off the
  // stage: one that ends, or waits in a primitive of Boost's.
  boost::fibers::context* pick_next() noexcept;

  void make_runnable(Fiber& fiber) noexcept;
  void yield(Fiber& fiber);
  // As yield(), but throws nothing: where the world has ended, the fiber meets that at its next blocking call.
  void give_way(Fiber& fiber);
  // See this_rank::preempt().
  void preempt(Fiber& fiber) noexcept;
  void poll(Fiber& fiber, bool reads_clock);

  // Until others have done something. For a call that would block in the kernel (read() of a pipe) until another rank
  // makes one: it looks again and again, but as nothing else comes of a look, one that is in vain is a blocked rank's.
  // `first`: of this call.
  void wait_in_kernel(Fiber& fiber, const Observer& observer, bool first);
  // What they look at may have changed.
  void look_in_kernel() noexcept;

  // Leaves the stage; returns when this fiber runs again.
  void suspend(Fiber& fiber) noexcept;
  // Has the world (or the rank that this fiber helps) ended without this fiber?
  bool must_end(const Fiber& fiber) const noexcept { return ending_ || fiber.abort; }
  // Throws RankAborted; leaves a fiber behind that is unwinding and cannot take it. `observer`: the call it was in.
  [[noreturn]] void meet_the_end(Fiber& fiber, const Observer* observer);
  // See WaitQueue::linger().
  bool linger(Fiber& fiber, const Observer& observer);
  // std::terminate() or exit() in a fiber: the rank has failed of the exception that is being handled (or could not be
  // unwound); the other ranks have not.
  [[noreturn]] void terminate(Fiber& fiber);

  bool ending() const noexcept { return ending_; }
  const Fiber& fiber(std::uint32_t id) const noexcept { return fibers_[id]; }
  void note_progress() noexcept { progress_ = true; }
  // A fiber has done something other than look; what it wrote may be what pollers look at.
  void note_step() noexcept { stepped_ = true; }
  void note_given_up(int rank, const Observer& observer);
  // Of a fiber that goes on from a wait after the world has ended: others, as they fail, may have let it.
  void note_where_it_hung(Fiber& fiber, const Observer& observer);

  const ExecutorOptions options;
  Decisions& decisions;
  Clock& clock;
  RankState& state;
  FailureSink& sink;
  const pid_t process = getpid();
  const std::uint64_t world = new_world_number();
  TimerQueue timers;
  const std::unique_ptr<interpose::WorldState> interposed;
  const WaitExplainer* explainer = nullptr;

 private:
  struct Rank {
    std::deque<std::function<void()>> posted;
    bool posted_running = false;
    bool failed = false;
    std::uint32_t fibers = 0;
    std::optional<GivenUpWait> gave_up;
  };

  // fiber_life.cpp: how fibers begin and end
  Fiber& create(int rank, std::function<void()> work);
  Fiber& new_fiber(int rank);
  void enter(Fiber& fiber, std::function<void()>& work) noexcept;
  void run_body(Fiber& fiber, const std::function<void()>& work) noexcept;
  void record_failure(Fiber& fiber, std::exception_ptr error, CallSite thrown_at);
  // The exception from which the running fiber unwinds, with its text.
  static std::optional<Unwinding> unwinding();
  void end(Fiber& fiber) noexcept;
  void note_ended(Fiber& fiber) noexcept;
  void run_posted(int rank);
  void abort_rank(int rank) noexcept;

  // switching.cpp: who runs next, and how the stage changes hands
  Fiber* choose_next() noexcept;
  boost::fibers::context* change_to(Fiber* next) noexcept;
  void leave_for(Fiber& fiber, Fiber* next) noexcept;
  void switch_state(Fiber* to) noexcept;
  void resume_fibers();
  void offer_stage(Fiber& fiber) noexcept;
  // Ends the process that a rank has forked: it has a copy of all ranks, and would run the world a second time.
  void leave_if_forked() const noexcept;

  // idle.cpp: what happens when nobody can run
  void idle();
  bool release_pollers();
  bool only_in_kernel() const noexcept;
  bool looks_in_kernel_are_due() noexcept;
  void let_time_pass(VirtualTime to);
  bool idle_polls();
  BlockedFiber describe(const Fiber& fiber, const Observer* observer) const;
  void note_hang();

  // world_end.cpp: how a world ends, and how its fibers meet that
  void finish_world();
  void note_blocked(Fiber& fiber, const Observer* observer);
  void note_where(Fiber& fiber, const Observer* observer);
  [[noreturn]] void leave_behind(Fiber& fiber);

  void create_ranks(const std::function<void(int)>& body);

  std::vector<Rank> ranks_;
  FiberTable fibers_;
  RunQueue runnable_;
  std::vector<Fiber*> pollers_;
  Fiber* current_ = nullptr;
  Fiber* ended_now_ = nullptr;  // on its way out of its last switch

  boost::fibers::context* host_ = nullptr;
  std::unique_ptr<std::byte[]> host_image_;
  NativeState host_native_;
  NativeState::Place native_;  // of the thread that runs
  AsanStack host_asan_;
  Scheduler* scheduler_ = nullptr;
  StackPool& stacks_;

  RunOutcome outcome_;
  std::exception_ptr error_;  // what run() throws in the end
  int mains_alive_ = 0;
  std::size_t alive_ = 0;
  std::size_t ended_since_release_ = 0;
  bool ending_ = false;
  bool progress_ = false;
  bool stepped_ = false;
  bool clock_was_read_ = false;
  std::vector<BlockedFiber> hang_;  // since the last progress; see RunOutcome::hang
  VirtualTime hang_began_{};
  std::uint64_t idle_looks_ = 0;
  std::uint64_t timed_looks_ = 0;
  std::uint64_t give_ups_ = 0;
  VirtualDuration clock_step_{};
};

}  // namespace rehearse::exec
