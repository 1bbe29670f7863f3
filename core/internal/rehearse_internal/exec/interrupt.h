// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include <rehearse/exec/time.h>

// A request from outside of the world to end the run that is under way in this process, made by a signal handler or
// another thread. The run ends as Ending::interrupted when the next fiber is to be chosen, or when nobody can run and
// time is to pass; a rank that computes and never switches is not stopped by it. The request stays until it is taken
// back, and decides nothing but where a run ends.
namespace rehearse::exec {

extern constinit std::atomic<bool> interrupt_flag;  // use the functions

inline void request_interrupt() noexcept { interrupt_flag.store(true, std::memory_order_relaxed); }
inline void clear_interrupt() noexcept { interrupt_flag.store(false, std::memory_order_relaxed); }
inline bool interrupt_requested() noexcept { return interrupt_flag.load(std::memory_order_relaxed); }

static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

// Where a run was interrupted: before this switch, which it counted and did not make, at this virtual time.
struct Interruption {
  std::uint64_t before_switch = 0;  // 0: nowhere
  VirtualTime at{};
};

// While it lives, a run that begins on this thread ends as Ending::interrupted at that place, without a request. A
// replay stops by it where the log stops. One at a time.
class InterruptedAgain {
 public:
  explicit InterruptedAgain(Interruption place) noexcept;
  InterruptedAgain(const InterruptedAgain&) = delete;
  InterruptedAgain& operator=(const InterruptedAgain&) = delete;
  ~InterruptedAgain();

  // The place at which a run that begins now ends.
  static Interruption place() noexcept;
};

}  // namespace rehearse::exec
