// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <boost/context/stack_context.hpp>

#include "world_parts.h"

namespace rehearse::exec {

class Fiber;
class Scheduler;
class StackPool;
struct LostStacks;

// Runs the work of fibers, and learns of their ends.
class FiberOwner {
 public:
  // Called in the fiber. Runs its work, and handles exceptions of the work.
  virtual void run(Fiber& fiber, const std::function<void()>& work) noexcept = 0;
  // Called in the fiber at its end: it has finished its work, or leave_behind() has given it up.
  virtual void note_ended(Fiber& fiber) noexcept = 0;

 protected:
  ~FiberOwner() = default;
};

// Starts and ends fibers, and counts those that are alive.
class FiberLife {
 public:
  FiberLife(WorldParts& world, RankState& state, FiberOwner& owner, LostStacks& lost_stacks);
  FiberLife(const FiberLife&) = delete;
  FiberLife& operator=(const FiberLife&) = delete;

  // Makes a runnable fiber. If memory runs out or RankState fails, throws and makes none.
  Fiber& create(int rank, std::uint32_t fiber_of_rank, std::function<void()> work);

  // The running fiber cannot unwind any further: it stays suspended forever.
  [[noreturn]] void leave_behind(Fiber& fiber);
  // Like leave_behind(), for a fiber that is not running: removes it from everything that might run it again, without
  // calling the owner. Timers on the fiber's stack may still fire; they notice that the fiber has ended.
  void stop_for_ever(Fiber& fiber) noexcept;
  // Ends a fiber that waits in a primitive of Boost.Fiber when the world ends, without calling the owner. Nothing can
  // unwind such a fiber, so it stays suspended forever, and the primitive goes on to refer to its stack.
  void give_up(Fiber& fiber) noexcept;

  std::size_t alive() const noexcept { return alive_; }

  // Call it on the thread's main context. If enough fibers have ended, or if fibers that are not ours can run, lets
  // Boost free the stacks of the ended fibers and run the others. Returns whether it did.
  bool release_ended();

 private:
  Fiber& add(int rank, std::uint32_t fiber_of_rank);
  void start(Fiber& fiber, std::function<void()> work);
  void enter(Fiber& fiber, std::function<void()>& work) noexcept;
  void end(Fiber& fiber) noexcept;
  void mark_ended(Fiber& fiber) noexcept;

  WorldParts& world_;
  RankState& state_;
  FiberOwner& owner_;
  Scheduler& scheduler_;
  StackPool& stacks_;
  std::vector<boost::context::stack_context>& lost_stacks_;
  std::size_t alive_ = 0;
  std::size_t ended_since_release_ = 0;
};

}  // namespace rehearse::exec
