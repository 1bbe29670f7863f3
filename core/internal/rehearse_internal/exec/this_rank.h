// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>
#include <vector>

#include <rehearse/exec/access.h>
#include <rehearse/exec/observer.h>
#include <rehearse/exec/time.h>

// Functions for code that runs on a rank's fiber. Outside of a fiber, is_fiber() returns false, and the others throw
// std::logic_error unless their comment says otherwise.
namespace rehearse::exec::this_rank {

bool is_fiber() noexcept;

// Also for helper fibers (threads that the rank made, completion callbacks).
int rank();

// 0 for the rank's main fiber; counts up for its helper fibers.
std::uint32_t fiber_of_rank();

// The number of the thread of the rank's code: 0 for its main thread and for callbacks, which run on helper fibers;
// else fiber_of_rank(). 0 outside of a fiber.
std::uint32_t thread_of_rank() noexcept;

// Whether work from RankExecutor::post() is running.
bool is_callback() noexcept;

VirtualTime now();

// A scheduling point: lets other fibers run.
void yield();

// Like yield(), for callers that must not throw: if the world has ended, give_way() returns, and the rank's next
// blocking call throws RankAborted. Does nothing outside of a fiber.
void give_way() noexcept;

// If ExecutorOptions::preempt is on, the oracle may let other fibers run first; otherwise, and outside of a fiber, does
// nothing. For calls that never block and yet race with those of other ranks: writes to a store, locks. The livelock
// detector ignores the switch, but ExecutorOptions::steps_max counts it. `access`: what the call touches.
void preempt(Access access = {}) noexcept;

// Whether preempt() may let other fibers run in this world.
bool preempts() noexcept;

// What a call touches, for preempt() and poll(): `kind` and `name` together name the thing. If no one asks for accesses
// in this run, computes nothing.
Access access_to(std::string_view kind, std::string_view name, bool writes) noexcept;

// A poll: a look at something that may or may not have changed (isCompleted(), Store::check(), a clock read in a loop).
// The first poll after the rank has done something else only yields. Further polls wait until the other ranks have run,
// and each takes a little time (VirtualIdlePolicy). If nothing can ever change, the world ends as a livelock. If
// another rank's wait has a timeout, the timeout fires first, and RunOutcome::hang mentions the poll.
//
// `asked`: describes the polling call in reports; null: unknown. Must live until poll() returns.
void poll(const Observer* asked = nullptr, Access access = {});

// A scheduling point for a look that finds what it looks for. It is no poll, and does not end a series of polls.
void look(Access access = {});

// Suspends until virtual time has advanced by `duration`. `doing`: the rank's activity for reports; a string literal.
void sleep_for(VirtualDuration duration, const char* doing = "a sleep");

// The target of a call. A call on a group may call the store, so the last calls of both kinds are kept separately.
enum class CallOn : std::uint8_t { group, store };

// These functions note that a call on a group or a store begins, has been made, or has failed with `error`. In virtual
// time, after a call that has failed without taking time, the rank's next call of the same kind takes some time. Many
// such failures in a row end the world as a livelock. Otherwise a loop that catches and retries would never end. A call
// that begins and never ends counts as failed. Outside of a fiber, the functions do nothing.
void begin_call(CallOn on = CallOn::group);
void end_call(CallOn on = CallOn::group) noexcept;
void fail_call(const std::exception_ptr& error, CallOn on = CallOn::group) noexcept;

// The errors of the rank's last calls that failed, whether or not later calls have succeeded; the last one at the end.
// keep_error(): adds one that the rank gets to know from a future.
std::vector<std::exception_ptr> errors_of_last_calls();
void keep_error(const std::exception_ptr& error);

// Calls `call`, and notes a call on the store around it: begin_call() before, and afterwards end_call() or, if `call`
// throws, fail_call(). Passes the exception on.
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

// Like sleep_for(), for callers that must not throw: if the world ends, pause() returns early, and the rank's next
// blocking call throws RankAborted.
void pause(VirtualDuration duration, const char* doing) noexcept;

// Like sleep_for(), for use inside a call that may poll: the sleep does not end the rank's series of polls in a row.
void spend(VirtualDuration duration, const char* doing);

// Call it on a rank that must not go on: the rank has found an error for which another rank will end the world, or the
// rank hangs. Throws RankAborted when the world ends; until then the rank is blocked, as in any other wait.
[[noreturn]] void wait_for_the_end(const Observer& observer);

// Records that the wait described by `observer` has reached its timeout, for RankFailure::gave_up. Call it right before
// you throw.
void note_given_up(const Observer& observer);

}  // namespace rehearse::exec::this_rank
