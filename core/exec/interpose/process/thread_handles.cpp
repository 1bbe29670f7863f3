// SPDX-License-Identifier: BSD-3-Clause
// libc functions on thread handles, except those that make, join and detach threads (thread.cpp). For the handle of a
// fiber, they store the fiber's name. They return the scheduling and the processors of the thread that all ranks share,
// and ignore attempts to change these. Signals go to that thread, and pthread_cancel() throws.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <sched.h>

#include "exec/interpose/real.h"
#include "exec/interpose/world_state.h"

namespace rehearse::exec::interpose {

int handle_setname(pthread_t thread, const char* name) REHEARSE_INTERPOSES("pthread_setname_np");
int handle_getname(pthread_t thread, char* name, size_t bytes) REHEARSE_INTERPOSES("pthread_getname_np");
int handle_setaffinity(pthread_t thread, size_t bytes, const cpu_set_t* set)
    REHEARSE_INTERPOSES("pthread_setaffinity_np");
int handle_getaffinity(pthread_t thread, size_t bytes, cpu_set_t* set) REHEARSE_INTERPOSES("pthread_getaffinity_np");
int handle_setschedparam(pthread_t thread, int policy, const sched_param* parameters)
    REHEARSE_INTERPOSES("pthread_setschedparam");
int handle_getschedparam(pthread_t thread, int* policy, sched_param* parameters)
    REHEARSE_INTERPOSES("pthread_getschedparam");
int handle_getattr(pthread_t thread, pthread_attr_t* attributes) REHEARSE_INTERPOSES("pthread_getattr_np");
int handle_getcpuclockid(pthread_t thread, clockid_t* clock) REHEARSE_INTERPOSES("pthread_getcpuclockid");
int handle_kill(pthread_t thread, int signal) REHEARSE_INTERPOSES("pthread_kill");
int handle_cancel(pthread_t thread) REHEARSE_INTERPOSES("pthread_cancel");

namespace {

constinit Real<pthread_t (*)()> real_self_behind("pthread_self");
constinit Real<int (*)(pthread_t, const char*)> real_setname("pthread_setname_np");
constinit Real<int (*)(pthread_t, char*, size_t)> real_getname("pthread_getname_np");
constinit Real<int (*)(pthread_t, size_t, const cpu_set_t*)> real_setaffinity("pthread_setaffinity_np");
constinit Real<int (*)(pthread_t, size_t, cpu_set_t*)> real_getaffinity("pthread_getaffinity_np");
constinit Real<int (*)(pthread_t, int, const sched_param*)> real_setschedparam("pthread_setschedparam");
constinit Real<int (*)(pthread_t, int*, sched_param*)> real_getschedparam("pthread_getschedparam");
constinit Real<int (*)(pthread_t, pthread_attr_t*)> real_getattr("pthread_getattr_np");
constinit Real<int (*)(pthread_t, clockid_t*)> real_getcpuclockid("pthread_getcpuclockid");
constinit Real<int (*)(pthread_t, int)> real_kill("pthread_kill");
constinit Real<int (*)(pthread_t)> real_cancel("pthread_cancel");

pthread_t thread_behind(pthread_t thread) { return ThreadTable::is_handle(thread) ? real_self_behind() : thread; }

std::shared_ptr<MadeThread> made_thread(pthread_t thread) {
  WorldState* const world = world_of_host();
  return world != nullptr ? world->threads.find(thread) : nullptr;
}

}  // namespace

int handle_setname(pthread_t thread, const char* name) {
  if (!ThreadTable::is_handle(thread)) return real_setname(thread, name);
  if (std::strlen(name) > 15) return ERANGE;
  if (const auto made = made_thread(thread)) made->name = name;
  return 0;
}

int handle_getname(pthread_t thread, char* name, size_t bytes) {
  if (!ThreadTable::is_handle(thread)) return real_getname(thread, name, bytes);
  if (bytes < 16) return ERANGE;
  const auto made = made_thread(thread);
  std::snprintf(name, bytes, "%s", made != nullptr ? made->name.c_str() : "");
  return 0;
}

int handle_setaffinity(pthread_t thread, size_t bytes, const cpu_set_t* set) {
  // All ranks share one thread, so a rank must not move the others to other processors.
  return ThreadTable::is_handle(thread) ? 0 : real_setaffinity(thread, bytes, set);
}

int handle_getaffinity(pthread_t thread, size_t bytes, cpu_set_t* set) {
  return real_getaffinity(thread_behind(thread), bytes, set);
}

int handle_setschedparam(pthread_t thread, int policy, const sched_param* parameters) {
  return ThreadTable::is_handle(thread) ? 0 : real_setschedparam(thread, policy, parameters);
}

int handle_getschedparam(pthread_t thread, int* policy, sched_param* parameters) {
  return real_getschedparam(thread_behind(thread), policy, parameters);
}

// Fills in only the stack, and only for the calling fiber, because callers want to know where their stack ends.
int handle_getattr(pthread_t thread, pthread_attr_t* attributes) {
  const Fiber* const fiber = current_fiber();
  const bool asks_for_itself = fiber != nullptr && thread == ::pthread_self();
  if (!asks_for_itself && !ThreadTable::is_handle(thread)) return real_getattr(thread, attributes);
  if (const int error = ::pthread_attr_init(attributes)) return error;
  if (!asks_for_itself) return 0;
  const auto& stack = fiber->stack;
  return ::pthread_attr_setstack(attributes, static_cast<char*>(stack.sp) - stack.size, stack.size);
}

int handle_getcpuclockid(pthread_t thread, clockid_t* clock) {
  return real_getcpuclockid(thread_behind(thread), clock);
}

int handle_kill(pthread_t thread, int signal) { return real_kill(thread_behind(thread), signal); }

int handle_cancel(pthread_t thread) {
  if (!ThreadTable::is_handle(thread)) return real_cancel(thread);
  throw std::logic_error("pthread_cancel() is not supported for a thread that a rank made");
}

std::span<const Interposed> thread_handle_functions() {
  static const std::array functions = {
      Interposed{"pthread_setname_np", reinterpret_cast<const void*>(handle_setname)},
      Interposed{"pthread_getname_np", reinterpret_cast<const void*>(handle_getname)},
      Interposed{"pthread_setaffinity_np", reinterpret_cast<const void*>(handle_setaffinity)},
      Interposed{"pthread_getaffinity_np", reinterpret_cast<const void*>(handle_getaffinity)},
      Interposed{"pthread_setschedparam", reinterpret_cast<const void*>(handle_setschedparam)},
      Interposed{"pthread_getschedparam", reinterpret_cast<const void*>(handle_getschedparam)},
      Interposed{"pthread_getattr_np", reinterpret_cast<const void*>(handle_getattr)},
      Interposed{"pthread_getcpuclockid", reinterpret_cast<const void*>(handle_getcpuclockid)},
      Interposed{"pthread_kill", reinterpret_cast<const void*>(handle_kill)},
      Interposed{"pthread_cancel", reinterpret_cast<const void*>(handle_cancel)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
