// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
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

// The state of the interposed functions for one world. Destroyed with the world's executor, so nothing of an ended
// world can reach the next one.
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
  std::map<int, std::uint32_t> listing_orders;  // by rank; see folders.cpp
  std::vector<ClockJump> clock_jumps;           // by rank; empty: no clock has jumped

  WorldState() = default;
  WorldState(const WorldState&) = delete;
  WorldState& operator=(const WorldState&) = delete;
  // Gives up initialisations from which fibers never returned (see FiberLife::leave_behind()).
  ~WorldState();
};

inline WorldState& world_of(const Fiber& fiber) noexcept { return fiber.world->interposed; }

// Call it when pthread_mutex_trylock() or a similar call has failed. The call counts as a poll, because a rank that
// tries repeatedly must let the others run. While a rank unwinds, a poll would throw, so the first 1,000 tries are
// free.
inline void poll_in_vain(Fiber& fiber) {
  constexpr std::uint32_t polls_at_the_end = 1'000;
  if (!fiber.world->outcome.ended_for(fiber) || ++fiber.polls > polls_at_the_end) poll(fiber);
}

// The state of the world that runs on this thread, even while no fiber runs (a timer fires); null: there is no world.
inline WorldState* world_of_host() noexcept {
  RankExecutor* const executor = RankExecutor::current();
  return executor != nullptr ? &executor->parts().interposed : nullptr;
}

}  // namespace rehearse::exec::interpose
