// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
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

// The pending work of each rank (RankExecutor::post()), and how many fibers of the rank are processing it: one, and
// more only if work waits for later work.
class PostedWork {
 public:
  using Work = std::function<void()>;

  explicit PostedWork(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  // Returns true if no fiber is processing the rank's work: then the caller must start one.
  bool add(int rank, Work work) {
    Rank& owner = at(rank);
    owner.waiting.push_back(std::move(work));
    ++pending_;
    if (owner.fibers > 0) return false;
    ++owner.fibers;
    return true;
  }

  // A rank with pending work, for which the caller must start another fiber; nullopt: there is none. Call it when no
  // fiber can run, so that those which process the rank's work are blocked.
  std::optional<int> next_stuck() {
    if (pending_ == 0) return std::nullopt;
    const auto stuck =
        std::find_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.waiting.empty(); });
    ++stuck->fibers;
    return static_cast<int>(stuck - ranks_.begin());
  }

  // A processing fiber calls this for the oldest piece of work. nullopt: there is no more, and the fiber must end.
  std::optional<Work> take(int rank) {
    Rank& owner = at(rank);
    REHEARSE_CHECK(owner.fibers > 0, rank, owner.waiting.size());
    if (owner.waiting.empty()) {
      --owner.fibers;
      return std::nullopt;
    }
    auto work = std::move(owner.waiting.front());
    owner.waiting.pop_front();
    --pending_;
    return work;
  }

  // The rank has ended: destroys its pending work. The fibers that process the work unwind like any other.
  void drop(int rank) {
    pending_ -= at(rank).waiting.size();
    std::exchange(at(rank).waiting, {}).clear();
  }

  // The rank has crashed, including the fiber that processes its work: keeps the pending work, because no destructor
  // may run.
  void bury(int rank) {
    pending_ -= at(rank).waiting.size();
    buried_.push_back(std::exchange(at(rank).waiting, {}));
    at(rank).fibers = 0;
  }

 private:
  struct Rank {
    std::deque<Work> waiting;
    int fibers = 0;
  };
  Rank& at(int rank) noexcept { return ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<Rank> ranks_;
  std::vector<std::deque<Work>> buried_;
  std::size_t pending_ = 0;
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
  // Starts a fiber for posted work behind work that is blocked, as the next thread of a back end would do it. Returns
  // whether there was any. Call it when no fiber can run.
  bool help_with_posted();

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
