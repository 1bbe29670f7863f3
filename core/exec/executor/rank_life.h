// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <functional>

#include "fiber_life.h"
#include "posted_work.h"
#include "world_parts.h"

namespace rehearse::exec {

// Runs the bodies of ranks and the work of their helper fibers, and ends ranks. A rank is like a process whose main
// fiber runs the body: it returns, fails, crashes, or unwinds with its world.
class RankLife final : public FiberOwner {
 public:
  RankLife(WorldParts& world, const Decisions& decisions, FailureSink& sink);
  RankLife(const RankLife&) = delete;
  RankLife& operator=(const RankLife&) = delete;

  // See RankExecutor.
  void do_helpers_work_by(std::function<void(int, const std::function<void()>&)> around) {
    around_helpers_ = std::move(around);
  }
  Fiber& spawn(int rank, std::function<void()> work);
  void post(int rank, std::function<void()> work);

  // Starts all ranks. If one cannot be created, the world ends.
  void begin_all(const std::function<void(int)>& body);
  // Calls `before`, then starts a new incarnation of a rank that has ended.
  void begin_again(int rank, const std::function<void()>& before) noexcept;

  // Handles std::terminate() or exit() in a fiber: fails the rank with the exception that is being handled. If there is
  // none, the failure's text names a likely cause of std::terminate(). If the fiber was unwinding because its world or
  // rank has ended, only leaves the fiber behind. As for any failure, the sink decides whether the world ends.
  [[noreturn]] void terminate(Fiber& fiber);
  // See crash_rank().
  void crash(int rank);
  // The world has ended: unwinds the fibers that can run. Then records what each of the other fibers waits for, unless
  // all ranks have returned, and unwinds these fibers. Call it on the thread's main context.
  void unwind_all();

 private:
  void begin(int rank);
  void run(Fiber& fiber, const std::function<void()>& work) noexcept override;
  void note_ended(Fiber& fiber) noexcept override;
  void record_failure(Fiber& fiber, std::exception_ptr error, CallSite thrown_at);
  void run_posted(int rank);
  void abort_others(int rank) noexcept;
  void stop_for_ever(Fiber& fiber) noexcept;
  void give_up(Fiber& fiber) noexcept;
  void note_blocked();

  WorldParts& world_;
  const Decisions& decisions_;
  FailureSink& sink_;
  std::function<void(int)> body_;  // runs once for each incarnation of a rank
  std::function<void(int, const std::function<void()>&)> around_helpers_;
  PostedWork posted_;
};

}  // namespace rehearse::exec
