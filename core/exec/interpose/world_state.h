// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse_internal/exec/clock_jump.h>

#include "exec/executor/world_outcome.h"
#include "exec/executor/world_parts.h"
#include "exec/interpose/process/process_state.h"
#include "exec/interpose/process/thread_table.h"
#include "exec/interpose/sync/barrier_table.h"
#include "exec/interpose/sync/initialisations.h"
#include "exec/interpose/sync/rwlock_holds.h"
#include "exec/wait/polling.h"
#include "outside_wait.h"
#include "owner_tag.h"
#include "wait_table.h"

namespace rehearse::exec::interpose {

// What the interposed functions know of one world. It goes with the world's executor: nothing of a world that is over
// can reach the next one.
struct WorldState {
  OwnerTags tags;
  WaitTable conditions;
  WaitTable locks;  // mutexes and reader-writer locks
  WaitTable semaphores;
  WaitTable futexes;
  BarrierTable barriers;
  RwlockHolds rwlock_holds;
  Initialisations guards;
  Initialisations onces;
  ThreadTable threads;
  ProcessStates processes;
  OutsideWaits outside_waits;
  std::vector<ClockJump> clock_jumps;  // by rank; empty: none has jumped

  WorldState() = default;
  WorldState(const WorldState&) = delete;
  WorldState& operator=(const WorldState&) = delete;
  // Gives up initialisations whose fiber was left behind.
  ~WorldState();
};

inline WorldState& world_of(const Fiber& fiber) noexcept { return fiber.world->interposed; }

// A try that failed is a look at what others do: a rank that tries again and again must let them run. One that unwinds
// may try for a while.
inline void look_in_vain(Fiber& fiber) {
  constexpr std::uint32_t looks_at_the_end = 1'000;
  if (!fiber.world->outcome.ended_for(fiber) || ++fiber.looks > looks_at_the_end) poll(fiber);
}

// The world that is under way on this thread although no fiber runs (a timer fires); null when there is none.
inline WorldState* world_of_host() noexcept {
  RankExecutor* const executor = RankExecutor::current();
  return executor != nullptr ? &executor->parts().interposed : nullptr;
}

}  // namespace rehearse::exec::interpose
