// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <functional>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/time.h>

// What code running on a rank's fiber may ask and do. Outside of a fiber, is_fiber() is false and the rest throws
// std::logic_error.
namespace rehearse::exec::this_rank {

bool is_fiber() noexcept;

// The rank whose fiber this is; helper fibers (threads that the rank made, completion callbacks) answer the same.
int rank();

// 0 for the rank's main fiber; counts up for its helper fibers.
std::uint32_t fiber_of_rank();

VirtualTime now();

// Lets others run; a scheduling point.
void yield();

// As yield(), for callers that nothing may be thrown through: where the world has ended it returns, and the rank meets
// that at its next blocking call. Outside of a fiber nothing happens.
void give_way() noexcept;

// Where ExecutorOptions::preempt is on, the oracle may let others run first; else nothing. For calls that never block
// and yet race with those of other ranks: writes to a store, locks. Neither a step nor a look.
void preempt() noexcept;

// A look at something that may or may not have changed (isCompleted(), Store::check(), a clock read in a loop). The
// first look after the rank has done something else returns at once; further looks let the other ranks run, and then
// each costs a little time (VirtualIdlePolicy). When nothing can ever change, the world ends as a livelock; where
// another rank's wait has a timeout, that fires first, and RunOutcome::hang tells of the poll.
//
// `asked`: the call that looks, for reports; null: not known. It is used until poll() returns.
void poll(const Observer* asked = nullptr);

// Suspends until virtual time has moved on by `duration`. `doing`: what a report says that the rank is in meanwhile; a
// literal.
void sleep_for(VirtualDuration duration, const char* doing = "a sleep");

// What a call is on. A call on a group may call the store, so that each kind has a last call of its own.
enum class CallOn : std::uint8_t { group, store };

// A call on other ranks begins; it has been made; it has failed, with `error`. A call that has failed in no time costs
// time when the next one of its kind begins, and so many of either kind in a row end the world as a livelock: a loop
// that catches and tries again would else never end. One that was begun and not ended has failed, too. Outside of a
// fiber nothing happens.
void begin_call(CallOn on = CallOn::group);
void end_call(CallOn on = CallOn::group) noexcept;
void fail_call(const std::exception_ptr& error, CallOn on = CallOn::group) noexcept;

// Makes `call`, which fails by throwing, as a call of the store.
template <class Call>
void make_store_call(const Call& call) {
  begin_call(CallOn::store);
  try {
    call();
  } catch (...) {
    fail_call(std::current_exception(), CallOn::store);
    throw;
  }
  end_call(CallOn::store);
}

// As sleep_for(), within a call that may be a look: it does not count as something else that the rank has done.
void spend(VirtualDuration duration, const char* doing);

// For a rank that must not go on: it has found what another one will end the world for, or it hangs. Throws RankAborted
// when the world ends; where nothing ends it the rank is blocked, as in any other wait.
[[noreturn]] void wait_for_the_end(const Observer& observer);

// What `observer` tells of has met its timeout, and the caller is about to throw: remembered for RankFailure::gave_up.
void note_given_up(const Observer& observer);

}  // namespace rehearse::exec::this_rank
