// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include <rehearse/exec/time.h>

// Requests from outside of the world to end the current run of this process; a signal handler or another thread makes
// them. The run ends as Ending::interrupted before the executor chooses its next fiber or lets time pass. A rank that
// computes without switching does not notice. The request stays until it is cleared, and affects only where a run ends.
namespace rehearse::exec {

// Use the functions below. The lowest bit is the request that clear_interrupt() withdraws. The other bits count the
// time limits that ask. One word holds both, because each switch reads it.
extern constinit std::atomic<unsigned> interrupt_requests;
inline constexpr unsigned kInterruptOfALimit = 2;

inline void request_interrupt() noexcept { interrupt_requests.fetch_or(1, std::memory_order_relaxed); }
inline void clear_interrupt() noexcept { interrupt_requests.fetch_and(~1u, std::memory_order_relaxed); }
inline bool interrupt_requested() noexcept { return interrupt_requests.load(std::memory_order_relaxed) != 0; }

// For TimeLimit. Its request is apart from those of others, so that neither withdraws the other's. Call both equally
// often.
inline void request_interrupt_of_limit() noexcept {
  interrupt_requests.fetch_add(kInterruptOfALimit, std::memory_order_relaxed);
}
inline void clear_interrupt_of_limit() noexcept {
  interrupt_requests.fetch_sub(kInterruptOfALimit, std::memory_order_relaxed);
}

static_assert(std::atomic<unsigned>::is_always_lock_free, "a signal handler writes it");

// The place at which a run was interrupted: the number of the switch that the run counted but did not make, and the
// virtual time.
struct Interruption {
  std::uint64_t before_switch = 0;  // 0: not interrupted
  VirtualTime at{};
};

// While it lives, a run that begins on this thread ends as Ending::interrupted at `place`, without a request. A replay
// uses it to stop where the log stops. Only one at a time.
class InterruptedAgain {
 public:
  explicit InterruptedAgain(Interruption place) noexcept;
  InterruptedAgain(const InterruptedAgain&) = delete;
  InterruptedAgain& operator=(const InterruptedAgain&) = delete;
  ~InterruptedAgain();

  // The place at which a run that begins now must end.
  static Interruption place() noexcept;
};

}  // namespace rehearse::exec
