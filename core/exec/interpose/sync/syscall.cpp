// SPDX-License-Identifier: BSD-3-Clause
// Futexes on which C++ libraries wait by syscall(): std::future, std::atomic::wait, std::latch, std::barrier. Also
// files that programs close by system call number.
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/interpose/io/close.h"
#include "exec/interpose/io/report_blocking_call.h"
#include "exec/interpose/real.h"
#include "exec/interpose/time/time_map.h"
#include "exec/interpose/world_state.h"
#include "exec/time/doorbell.h"
#include "exec/wait/suspension.h"
#include "syscall.h"

namespace rehearse::exec::interpose {

// libc's function is variadic and reads six arguments for every call. This function has parameters for all six, so
// arguments that a caller leaves out are indeterminate, as in libc; va_arg() would read beyond the caller's frame.
long syscall_here(long number, long a1, long a2, long a3, long a4, long a5, long a6) REHEARSE_INTERPOSES("syscall");

namespace {

constinit Real<long (*)(long, long, long, long, long, long, long)> real_syscall("syscall");
thread_local int t_pass_through = 0;

struct FutexCall {
  int* word;
  int operation;
  int value;
  const timespec* timeout;
};

long fail_syscall(int error) {
  errno = error;
  return -1;
}

long wait_for_futex(Fiber& fiber, const FutexCall& call, std::optional<VirtualTime> deadline) {
  WaitTable& waiters = world_of(fiber).futexes;
  const OutsideWait outside(fiber, waiters, call.word);
  if (__atomic_load_n(call.word, __ATOMIC_ACQUIRE) != call.value) return fail_syscall(EAGAIN);
  const OpaqueObserver observer("a future, latch or atomic variable (futex)");
  const auto result = waiters.wait_or_end(call.word, observer, deadline);
  if (!result) abort_wait(fiber, observer);
  return *result == WaitResult::timed_out ? fail_syscall(ETIMEDOUT) : 0;
}

// The timeout of FUTEX_WAIT counts from now, that of FUTEX_WAIT_BITSET from its clock's zero.
long wait_in_fiber(Fiber& fiber, const FutexCall& call) {
  if (call.timeout == nullptr) return wait_for_futex(fiber, call, std::nullopt);
  if (!valid(*call.timeout)) return fail_syscall(EINVAL);
  const auto now = fiber.world->clock.now();
  if ((call.operation & FUTEX_CMD_MASK) == FUTEX_WAIT) {
    return wait_for_futex(fiber, call, after(now, to_duration(*call.timeout)));
  }
  const auto epochs = epochs_of(fiber);
  const bool realtime = (call.operation & FUTEX_CLOCK_REALTIME) != 0;
  return wait_for_futex(fiber, call, to_deadline(*call.timeout, realtime ? epochs.realtime : epochs.monotonic));
}

long wake(WorldState& world, const FutexCall& call) {
  long woken = 0;
  while (woken < call.value && world.futexes.notify_one(call.word)) ++woken;
  return woken;
}

// nullopt: let the kernel handle the call.
std::optional<long> futex(const FutexCall& call) {
  Fiber* const fiber = current_fiber();
  WorldState* const world = world_of_host();
  switch (call.operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      if (fiber == nullptr) return std::nullopt;
      return wait_in_fiber(*fiber, call);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
      signal_outside(call.word);
      if (world == nullptr) return std::nullopt;
      const long woken = wake(*world, call);
      const long threads = real_syscall(SYS_futex, reinterpret_cast<long>(call.word), call.operation,
                                        call.value - woken, 0, 0, static_cast<int>(FUTEX_BITSET_MATCH_ANY));
      return threads < 0 ? threads : woken + threads;
    }
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_WAIT_REQUEUE_PI:
      if (fiber != nullptr) report_blocking_call(*fiber, "futex()");
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

PassThrough::PassThrough() noexcept { ++t_pass_through; }
PassThrough::~PassThrough() { --t_pass_through; }

void wake_threads(const void* word) noexcept {
  const int error = errno;
  real_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, 0, 0, 0);
  errno = error;
}

long syscall_here(long number, long a1, long a2, long a3, long a4, long a5, long a6) {
  if (number == SYS_futex && t_pass_through == 0) {
    const FutexCall call{reinterpret_cast<int*>(a1), static_cast<int>(a2), static_cast<int>(a3),
                         reinterpret_cast<const timespec*>(a4)};
    if (!is_doorbell(call.word)) {
      if (const auto result = futex(call)) return *result;
    }
  }
  if (const auto result = close_by_number(number, a1, a2, a3)) return *result;
  return real_syscall(number, a1, a2, a3, a4, a5, a6);
}

std::span<const Interposed> syscall_functions() {
  static const std::array functions = {
      Interposed{"syscall", reinterpret_cast<const void*>(syscall_here)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
