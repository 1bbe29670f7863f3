// SPDX-License-Identifier: BSD-3-Clause
// The functions that wait for files and sockets, such as poll(). In a rank, they return what is ready. If the call
// would have to wait, the rank fails; that of an interpreter waits for child processes in real time, and
// otherwise looks again and again in virtual time.
#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <optional>

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <fmt/format.h>

#include <rehearse_internal/exec/blocking_call.h>
#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/interpreter.h>
#include <rehearse_internal/exec/this_rank.h>

#include "exec/executor/world_parts.h"
#include "exec/fiber/fiber.h"
#include "exec/interpose/real.h"
#include "exec/interpose/world_state.h"
#include "exec/wait/suspension.h"
#include "report_blocking_call.h"

namespace rehearse::exec::interpose {

int io_poll(pollfd* files, nfds_t count, int timeout) REHEARSE_INTERPOSES("poll");
int io_ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* signals)
    REHEARSE_INTERPOSES("ppoll");
int io_select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) REHEARSE_INTERPOSES("select");
int io_epoll_wait(int epoll, epoll_event* events, int count, int timeout) REHEARSE_INTERPOSES("epoll_wait");
int io_epoll_pwait(int epoll, epoll_event* events, int count, int timeout, const sigset_t* signals)
    REHEARSE_INTERPOSES("epoll_pwait");

namespace {

constinit Real<int (*)(pollfd*, nfds_t, int)> real_poll("poll");
constinit Real<int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*)> real_ppoll("ppoll");
constinit Real<int (*)(int, fd_set*, fd_set*, fd_set*, timeval*)> real_select("select");
constinit Real<int (*)(int, epoll_event*, int, int)> real_epoll_wait("epoll_wait");
constinit Real<int (*)(int, epoll_event*, int, int, const sigset_t*)> real_epoll_pwait("epoll_pwait");

// The result of `look`, the call with a timeout of 0, once it finds something or `timeout` (null: none) has passed.
template <class Look>
int wait_for(Fiber& fiber, std::optional<VirtualDuration> timeout, const char* call, const Look& look) {
  if (const int ready = interpreter() != nullptr ? world_of(fiber).children.wait_for(look) : look(); ready != 0)
    return ready;
  if (interpreter() == nullptr) report_blocking_call(fiber, call);
  constexpr VirtualDuration kFirstPause = std::chrono::microseconds(50), kPauseMax = std::chrono::milliseconds(5);
  VirtualDuration pause = kFirstPause;
  for (auto left = timeout; !left || *left > VirtualDuration::zero();) {
    const auto next = left ? std::min(*left, pause) : pause;
    this_rank::sleep_for(next, call);
    if (const int ready = look(); ready != 0) return ready;
    if (left) *left -= next;
    pause = std::min(2 * pause, kPauseMax);
  }
  return 0;
}

// Negative: no timeout.
std::optional<VirtualDuration> milliseconds(int timeout) {
  return timeout < 0 ? std::nullopt : std::optional<VirtualDuration>(std::chrono::milliseconds(timeout));
}

std::optional<VirtualDuration> duration_of(const timespec* timeout) {
  if (timeout == nullptr) return std::nullopt;
  return std::chrono::seconds(timeout->tv_sec) + std::chrono::nanoseconds(timeout->tv_nsec);
}

// Sets of descriptors that select() overwrites; null: none.
struct Sets {
  std::array<fd_set*, 3> given;
  std::array<fd_set, 3> kept{};

  Sets(fd_set* read, fd_set* write, fd_set* except) : given{read, write, except} {
    for (std::size_t i = 0; i < given.size(); ++i) kept[i] = given[i] != nullptr ? *given[i] : fd_set{};
  }
  void restore() const {
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i] != nullptr) *given[i] = kept[i];
    }
  }
};

}  // namespace

void report_blocking_call(Fiber& fiber, const char* call) {
  throw_from_c(fiber,
               std::make_exception_ptr(BlockingCallError(fmt::format(
                   "rank {} called {}, which would block all ranks: they share one thread, so none of them could end "
                   "the wait. Use the simulated process group and store instead of sockets, or call it with timeout 0",
                   fiber.rank, call))));
}

int io_poll(pollfd* files, nfds_t count, int timeout) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || timeout == 0) return real_poll(files, count, timeout);
  return wait_for(*fiber, milliseconds(timeout), "poll()", [&] { return real_poll(files, count, 0); });
}

int io_ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* signals) {
  Fiber* const fiber = current_fiber();
  const bool waits = timeout == nullptr || timeout->tv_sec != 0 || timeout->tv_nsec != 0;
  if (fiber == nullptr || !waits) return real_ppoll(files, count, timeout, signals);
  const timespec none{};
  return wait_for(*fiber, duration_of(timeout), "ppoll()", [&] { return real_ppoll(files, count, &none, signals); });
}

int io_select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  Fiber* const fiber = current_fiber();
  const bool waits = timeout == nullptr || timeout->tv_sec != 0 || timeout->tv_usec != 0;
  if (fiber == nullptr || !waits) return real_select(count, read, write, except, timeout);
  const Sets sets(read, write, except);
  std::optional<VirtualDuration> limit;
  if (timeout != nullptr) limit = std::chrono::seconds(timeout->tv_sec) + std::chrono::microseconds(timeout->tv_usec);
  return wait_for(*fiber, limit, "select()", [&] {
    timeval none{};
    sets.restore();
    return real_select(count, read, write, except, &none);
  });
}

int io_epoll_wait(int epoll, epoll_event* events, int count, int timeout) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || timeout == 0) return real_epoll_wait(epoll, events, count, timeout);
  return wait_for(*fiber, milliseconds(timeout), "epoll_wait()",
                  [&] { return real_epoll_wait(epoll, events, count, 0); });
}

int io_epoll_pwait(int epoll, epoll_event* events, int count, int timeout, const sigset_t* signals) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || timeout == 0) return real_epoll_pwait(epoll, events, count, timeout, signals);
  return wait_for(*fiber, milliseconds(timeout), "epoll_pwait()",
                  [&] { return real_epoll_pwait(epoll, events, count, 0, signals); });
}

std::span<const Interposed> blocking_io_functions() {
  static const std::array functions = {
      Interposed{"poll", reinterpret_cast<const void*>(io_poll)},
      Interposed{"ppoll", reinterpret_cast<const void*>(io_ppoll)},
      Interposed{"select", reinterpret_cast<const void*>(io_select)},
      Interposed{"epoll_wait", reinterpret_cast<const void*>(io_epoll_wait)},
      Interposed{"epoll_pwait", reinterpret_cast<const void*>(io_epoll_pwait)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
