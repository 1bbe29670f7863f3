// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <boost/context/stack_context.hpp>

#include <rehearse/exec/access.h>
#include <rehearse/exec/observer.h>
#include <rehearse/exec/time.h>

#include "asan.h"
#include "native_state.h"
#include "prefetch.h"

namespace boost::fibers {
class context;
}

namespace rehearse::exec {

// The objects of one fiber (or thread) for the FiberLocal variables that it has used. Consists of one pointer, which is
// null until there is an object.
class FiberLocals {
 public:
  FiberLocals() = default;
  FiberLocals(const FiberLocals&) = delete;
  FiberLocals& operator=(const FiberLocals&) = delete;
  ~FiberLocals() { clear(); }

  void* find(std::size_t slot) const noexcept { return kept_ != nullptr ? find_kept(slot) : nullptr; }
  void keep(std::size_t slot, void* made, void (*destroy)(void*) noexcept);

  // Destroys all objects in reverse order of creation, including those that destructors create.
  void clear() noexcept;

 private:
  struct Kept;
  void* find_kept(std::size_t slot) const noexcept;

  Kept* kept_ = nullptr;
};

class WaitQueue;
struct WorldParts;

// One fiber of a rank: its main one or a helper (a thread that the rank made, a completion callback). Owned by its
// executor's FiberTable. A thousand fibers do not fit into the near caches, so the data that a switch touches is
// together: the last cache line of the fiber, and the image right behind it.
class alignas(kCacheLine) Fiber {
 public:
  enum class State : std::uint8_t { runnable, running, blocked, ended };

  std::uint32_t fiber_of_rank = 0;  // 0: the rank's main fiber
  std::int32_t owner_tag = 0;       // identifies it as the owner of locks (interpose/world_state.h)
  std::uint16_t end_calls = 0;      // how many times the ended world has woken it to unwind
  std::uint16_t times_aborted = 0;  // how many times RankAborted has been thrown in it
  int blocked_entry = -1;           // index into RunOutcome::blocked, to fill in the call site
  AsanStack asan;
  boost::context::stack_context stack;
  FiberLocals locals;

  // Two lines for worlds with patience.
  alignas(kCacheLine) Access next_access{};  // what its next step touches, if it may switch in front of that
  alignas(kCacheLine) VirtualTime limit{};   // of its last wait with a limit
  VirtualDuration passed_before_limit{0};    // TimerQueue::passed_by_choice() when that wait began
  std::uint16_t tries_in_vain = 0;           // of semaphores, with an interpreter

  // The last line but one: data that blocking and waking touch.
  alignas(kCacheLine) const Observer* observer = nullptr;  // while blocked
  Fiber* previous_waiter = nullptr;                        // in its queue; see WaitQueue
  Fiber* next_waiter = nullptr;
  bool timed_out = false;  // its wait has reached its limit
  bool is_thread = false;  // a thread that the rank's code has started

  // The last line, including the part of the native state that a switch touches.
  alignas(32) NativeState native;
  WorldParts* world = nullptr;
  boost::fibers::context* context = nullptr;
  WaitQueue* queue = nullptr;       // where it waits or waited last; may dangle after the wait
  std::uintptr_t suspended_at = 0;  // address of the stack frame in which it last suspended; 0: it never did
  std::uint32_t id = 0;             // its number in the world; a candidate of ChoiceKind::next_fiber
  int rank = -1;
  std::uint32_t polls = 0;        // polls in a row (see this_rank::poll)
  std::uint32_t clock_reads = 0;  // clock reads in a row
  State state = State::blocked;
  bool abort = false;      // its world or rank has ended: its blocked call throws when it resumes
  bool polling = false;    // it is among the world's Pollers
  bool in_queue = false;   // it waits in `queue`
  bool in_kernel = false;  // polls for the kernel's state; see wait_in_kernel() (exec/wait/polling.h)

  bool is_main() const noexcept { return fiber_of_rank == 0; }
  bool active() const noexcept { return state != State::ended; }

  // The RankState image, valid while suspended.
  std::byte* image() noexcept { return reinterpret_cast<std::byte*>(this + 1); }

  // Prefetches what resuming this fiber reads and writes. Call it early, so that the data has arrived when the fiber
  // resumes.
  void prefetch() noexcept {
    for (std::uintptr_t at = suspended_at - kBelow; at <= suspended_at + kAbove; at += kCacheLine) {
      prefetch_to_write(reinterpret_cast<const void*>(at));
    }
    prefetch_to_write(image());
    if (queue != nullptr) prefetch_to_write(queue);
  }

  // Prefetches what making this fiber runnable writes.
  void prefetch_to_wake() const noexcept {
    prefetch_to_write(&next_waiter);
    prefetch_to_write(&state);
  }

 private:
  friend class FiberTable;  // because it allocates the image, too
  Fiber() = default;
  ~Fiber() = default;

  static constexpr std::size_t kBelow = 2 * kCacheLine;  // a frame of Boost.Fiber and the registers that it saves
  static constexpr std::size_t kAbove = 2 * kCacheLine;  // our callers' frames
};

// Checks what the comments above and FiberTable::kAlignment say about cache lines.
static_assert(std::is_standard_layout_v<Fiber>);
static_assert(sizeof(Fiber) % (2 * kCacheLine) == kCacheLine);
inline constexpr std::size_t kLastLineOfFiber = sizeof(Fiber) - kCacheLine;
static_assert(offsetof(Fiber, observer) == kLastLineOfFiber - kCacheLine);
static_assert(offsetof(Fiber, timed_out) < kLastLineOfFiber - NativeState::kSeldomTouched);
static_assert(offsetof(Fiber, native) + NativeState::kSeldomTouched == kLastLineOfFiber);

// REHEARSE_CHECK(fiber.state == wanted) for the path of every switch. The macro would reserve room for its values in
// the frame of its function, and then a switch would touch more cache lines of the stack.
[[noreturn, gnu::cold, gnu::noinline]] void wrong_state(const Fiber& fiber, Fiber::State wanted,
                                                        const char* in) noexcept;
inline void require_state(const Fiber& fiber, Fiber::State wanted, const char* in) noexcept {
  if (fiber.state != wanted) [[unlikely]]
    wrong_state(fiber, wanted, in);
}

// The fiber that runs on this thread; null outside of fibers, and in the scheduler's own context. Every interposed libc
// call reads it, so it is one load.
extern constinit thread_local Fiber* t_current_fiber;
inline Fiber* current_fiber() noexcept { return t_current_fiber; }

// Code of a rank during which the thread cannot switch: "an OpenMP parallel region", in short "region".
struct NativeCode {
  const char* what;
  const char* name;
};

// The fiber for which this thread is in a NativeScope, and the kind of scope; null otherwise.
extern constinit thread_local Fiber* t_native_fiber;
extern constinit thread_local const NativeCode* t_native_code;

// The fiber whose rank this thread works for, whether or not it can switch.
inline Fiber* fiber_of_thread() noexcept { return t_current_fiber != nullptr ? t_current_fiber : t_native_fiber; }

// Removes a fiber that will never run again from the queue that it waits in. Part of WaitQueue (room wait).
void leave_queue(Fiber& fiber) noexcept;

// The running fiber. Throws std::logic_error, which names `caller`, if no fiber runs.
Fiber& require_fiber(const char* caller);

}  // namespace rehearse::exec
