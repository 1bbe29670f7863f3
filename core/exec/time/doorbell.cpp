// SPDX-License-Identifier: BSD-3-Clause
#include "doorbell.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rehearse_internal/exec/machine_time.h>

namespace rehearse::exec {
namespace {

// The ringing thread and the sleeper each write first and then read. So either the sleeper sees the new number, or the
// ringing thread sees the sleeper.
constinit std::atomic<std::uint32_t> g_rings{0};
constinit std::atomic<int> g_sleepers{0};
constinit thread_local std::uint32_t t_heard = 0;

}  // namespace

void ring_doorbell() noexcept {
  g_rings.fetch_add(1);
  if (g_sleepers.load() == 0) return;
  const int error = errno;
  ::syscall(SYS_futex, &g_rings, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  errno = error;
}

void hear_doorbell() noexcept { t_heard = g_rings.load(); }

bool is_doorbell(const void* word) noexcept { return word == &g_rings; }

void machine_sleep(VirtualDuration duration) noexcept {
  if (duration <= VirtualDuration::zero()) return;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration);
  const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
  g_sleepers.fetch_add(1);
  ::syscall(SYS_futex, &g_rings, FUTEX_WAIT_PRIVATE, t_heard, &time, nullptr, 0);
  g_sleepers.fetch_sub(1);
}

}  // namespace rehearse::exec
