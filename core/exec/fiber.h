// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <boost/context/stack_context.hpp>
#include <boost/fiber/context.hpp>

#include <rehearse/exec/executor.h>
#include <rehearse/exec/observer.h>

#include "asan.h"
#include "native_state.h"

namespace rehearse::exec {

// One fiber of a rank: its main one or a helper (a thread that the rank made, a completion callback).
// Owned by its executor from creation until the world is over.
class Fiber {
 public:
  enum class State : std::uint8_t { runnable, running, blocked, ended };

  RankExecutor::Impl* executor = nullptr;
  boost::fibers::context* context = nullptr;
  int rank = -1;
  std::uint32_t id = 0;             // within the world; a candidate of ChoiceKind::next_fiber
  std::uint32_t fiber_of_rank = 0;  // 0: the rank's main fiber
  std::int32_t owner_tag = 0;       // what the locks that it holds call it (interpose/owner_tag.h)
  State state = State::blocked;
  bool abort = false;            // the world ended: the blocked call throws when it resumes
  bool was_aborted = false;      // RankAborted has been thrown here
  std::uint32_t end_calls = 0;   // how often the ended world has woken it to unwind
  bool polling = false;          // suspended by poll(): it runs again when somebody did something
  std::uint32_t looks = 0;       // looks in a row (see this_rank::poll)
  std::uint32_t clock_reads = 0;  // clock reads in a row
  int blocked_entry = -1;        // index into RunOutcome::blocked, to fill in the call site

  const Observer* observer = nullptr;  // while blocked
  std::unique_ptr<std::byte[]> image;  // the RankState image, valid while suspended
  NativeState native;
  AsanStack asan;
  boost::context::stack_context stack;
  std::function<void()> work;

  bool is_main() const noexcept { return fiber_of_rank == 0; }
  bool active() const noexcept { return state != State::ended; }
};

// The fiber that runs on this thread; null outside (the scheduler's own context included). Every call of libc that we
// stand before asks, so it is one load.
extern constinit thread_local Fiber* t_current_fiber;
inline Fiber* current_fiber() noexcept { return t_current_fiber; }

// For code that only a fiber may run. Throws std::logic_error naming `caller` elsewhere.
Fiber& require_fiber(const char* caller);

// Suspends the running fiber until make_runnable(). Throws RankAborted when the world has ended; a fiber that is
// unwinding cannot take a second exception and is left behind instead (the call then never returns).
void suspend_blocked(Fiber& fiber, const Observer& observer);

// As suspend_blocked(), but returns false where that throws; the caller then owes a meet_the_end().
bool suspend_or_end(Fiber& fiber, const Observer& observer);
[[noreturn]] void meet_the_end(Fiber& fiber, const Observer& observer);

// Nothing happens unless the fiber is blocked.
void make_runnable(Fiber& fiber) noexcept;

}  // namespace rehearse::exec
