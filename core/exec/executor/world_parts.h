// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse_internal/exec/executor.h>
#include <sys/types.h>

namespace rehearse::exec {

class FailedCalls;
class FiberLife;
class FiberTable;
class Patience;
class Pollers;
class RankLife;
class RankTable;
class Restarts;
class Switcher;
class WorldOutcome;

namespace interpose {
struct WorldState;
}

// The parts of one world, for code that has a fiber (Fiber::world) or an executor (RankExecutor::parts()).
// RankExecutor::Impl owns the parts.
struct WorldParts {
  const ExecutorOptions options;
  const std::uint64_t number;  // see world_number()
  const pid_t process;         // the process that made the world; a process that a rank forks has a copy of the world

  Clock& clock;
  TimerQueue& timers;
  Patience& patience;
  IdlePolicy& idle_policy;
  WorldOutcome& outcome;
  Pollers& pollers;
  FailedCalls& failed_calls;
  FiberTable& fibers;
  RankTable& ranks;
  Switcher& switcher;
  FiberLife& fiber_life;
  RankLife& rank_life;
  Restarts& restarts;
  interpose::WorldState& interposed;
};

// Whether time may pass although fibers can run; see ExecutorOptions::patience.
inline bool is_patient(const WorldParts& world) noexcept { return world.options.patience > VirtualDuration::zero(); }

}  // namespace rehearse::exec
