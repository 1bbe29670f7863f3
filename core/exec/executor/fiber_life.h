// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "world_parts.h"

namespace rehearse::exec {

class Fiber;
class Scheduler;
class StackPool;

// Knows what a rank's fibers are for.
class FiberOwner {
 public:
  // Called in the fiber. Does its work, and handles what that throws.
  virtual void run(Fiber& fiber, const std::function<void()>& work) noexcept = 0;
  // Called in the fiber, which has ended: it has done its work, or is left behind.
  virtual void note_ended(Fiber& fiber) noexcept = 0;

 protected:
  ~FiberOwner() = default;
};

// Begins and ends fibers, and counts those that are alive. It does not know what a rank is.
class FiberLife {
 public:
  FiberLife(WorldParts& world, RankState& state, FiberOwner& owner);
  FiberLife(const FiberLife&) = delete;
  FiberLife& operator=(const FiberLife&) = delete;

  // Makes a fiber that can run. If there is no memory or RankState fails, it throws, and there is no fiber.
  Fiber& create(int rank, std::uint32_t fiber_of_rank, std::function<void()> work);

  // The running fiber cannot unwind any further: it stays suspended forever.
  [[noreturn]] void leave_behind(Fiber& fiber);
  // The same for a fiber that does not run: takes it out of whatever might run it again, and does not tell the owner.
  // Timers on its stack may still fire; they find that it has ended.
  void stop_for_ever(Fiber& fiber) noexcept;
  // The same for a fiber that waits in a primitive of Boost.Fiber's when the world ends.
  void give_up(Fiber& fiber) noexcept;

  std::size_t alive() const noexcept { return alive_; }

  // Call on the thread's main context. If there is enough to do, lets Boost free the stacks of ended fibers, and run
  // fibers that are not ours. Returns whether it did.
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
  std::size_t alive_ = 0;
  std::size_t ended_since_release_ = 0;
};

}  // namespace rehearse::exec
