// SPDX-License-Identifier: BSD-3-Clause
// The functions that wait for files and sockets, such as poll(). In a rank, they return what is ready. If the call
// would have to wait, the rank fails.
#include <array>

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <fmt/format.h>

#include <rehearse_internal/exec/blocking_call.h>

#include "exec/fiber/fiber.h"
#include "exec/interpose/real.h"
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

// `ready`: the result of the call with a timeout of 0.
int checked(const Fiber& fiber, int ready, const char* call) {
  if (ready != 0) return ready;
  report_blocking_call(fiber, call);
}

}  // namespace

void report_blocking_call(const Fiber& fiber, const char* call) {
  throw BlockingCallError(
      fmt::format("rank {} called {}, which would block all ranks: they share one thread, so none of them could end "
                  "the wait. Use the simulated process group and store instead of sockets, or call it with timeout 0",
                  fiber.rank, call));
}

int io_poll(pollfd* files, nfds_t count, int timeout) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || timeout == 0) return real_poll(files, count, timeout);
  return checked(*fiber, real_poll(files, count, 0), "poll()");
}

int io_ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* signals) {
  Fiber* const fiber = current_fiber();
  const bool waits = timeout == nullptr || timeout->tv_sec != 0 || timeout->tv_nsec != 0;
  if (fiber == nullptr || !waits) return real_ppoll(files, count, timeout, signals);
  const timespec none{};
  return checked(*fiber, real_ppoll(files, count, &none, signals), "ppoll()");
}

int io_select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  Fiber* const fiber = current_fiber();
  const bool waits = timeout == nullptr || timeout->tv_sec != 0 || timeout->tv_usec != 0;
  if (fiber == nullptr || !waits) return real_select(count, read, write, except, timeout);
  timeval none{};
  return checked(*fiber, real_select(count, read, write, except, &none), "select()");
}

int io_epoll_wait(int epoll, epoll_event* events, int count, int timeout) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || timeout == 0) return real_epoll_wait(epoll, events, count, timeout);
  return checked(*fiber, real_epoll_wait(epoll, events, count, 0), "epoll_wait()");
}

int io_epoll_pwait(int epoll, epoll_event* events, int count, int timeout, const sigset_t* signals) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || timeout == 0) return real_epoll_pwait(epoll, events, count, timeout, signals);
  return checked(*fiber, real_epoll_pwait(epoll, events, count, 0, signals), "epoll_pwait()");
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
