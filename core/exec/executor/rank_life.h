// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/check.h>

#include "fiber_life.h"
#include "world_parts.h"

namespace rehearse::exec {

// The pending work of each rank (RankExecutor::post()), and whether a fiber of the rank is processing it.
class PostedWork {
 public:
  using Work = std::function<void()>;

  explicit PostedWork(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  // Returns true if no fiber is processing the rank's work: then the caller must start one.
  bool add(int rank, Work work) {
    Rank& owner = at(rank);
    owner.waiting.push_back(std::move(work));
    return !std::exchange(owner.is_taken, true);
  }

  // The processing fiber calls this for the oldest piece of work. nullopt: there is no more, and the fiber must end.
  std::optional<Work> take(int rank) {
    Rank& owner = at(rank);
    REHEARSE_CHECK(owner.is_taken, rank, owner.waiting.size());
    if (owner.waiting.empty()) {
      owner.is_taken = false;
      return std::nullopt;
    }
    auto work = std::move(owner.waiting.front());
    owner.waiting.pop_front();
    return work;
  }

  // The rank has ended: destroys its pending work. The fiber that processes the work unwinds like any other.
  void drop(int rank) { at(rank).waiting.clear(); }

  // The rank has crashed, including the fiber that processes its work: keeps the pending work, because no destructor
  // may run.
  void bury(int rank) {
    buried_.push_back(std::exchange(at(rank).waiting, {}));
    at(rank).is_taken = false;
  }

 private:
  struct Rank {
    std::deque<Work> waiting;
    bool is_taken = false;
  };
  Rank& at(int rank) noexcept { return ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<Rank> ranks_;
  std::vector<std::deque<Work>> buried_;
};

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
  // The running fiber's rank fails with `error`, which cannot unwind: the fiber is left behind.
  [[noreturn]] void fail_at_once(Fiber& fiber, std::exception_ptr error, CallSite thrown_at);
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
