// SPDX-License-Identifier: BSD-3-Clause
// pthread_once, on which std::call_once builds: the routine may suspend, and other fibers wait for it.
#include <array>
#include <atomic>

#include <pthread.h>

#include "exec/interpose/real.h"
#include "exec/interpose/world_state.h"
#include "syscall.h"

namespace rehearse::exec::interpose {

int once_run(pthread_once_t* once, void (*routine)()) REHEARSE_INTERPOSES("pthread_once");

namespace {

constinit Real<int (*)(pthread_once_t*, void (*)())> real_once("pthread_once");

// glibc's protocol: a state is 0, done, or a mark of progress. The mark has a number for each generation of forked
// processes, because a routine interrupted by a fork runs again in the child.
constexpr int kOnceDone = 2;

thread_local const pthread_once_t* t_once_probe = nullptr;
thread_local int t_once_mark = 0;

// The mark of progress in this process. libc does not export the number, so see what libc itself writes.
int mark_of_progress() noexcept {
  pthread_once_t probe = PTHREAD_ONCE_INIT;
  t_once_probe = &probe;
  real_once(&probe, [] { t_once_mark = *t_once_probe; });
  return t_once_mark;
}

std::atomic_ref<int> state_of(pthread_once_t* once) { return std::atomic_ref<int>(*once); }

void finish(pthread_once_t* once, int state, Initialisations& initialisations) {
  state_of(once).store(state, std::memory_order_release);
  wake_threads(once);
  initialisations.end(once);
}

// Does not use libc's pthread_once(), because that function keeps a stack of clean-ups per thread, and fibers of one
// thread may finish their routines in any order.
void run_routine(Fiber& fiber, pthread_once_t* once, void (*routine)()) {
  struct Reset {
    pthread_once_t* once;
    Initialisations& initialisations;
    int state = 0;
    ~Reset() { finish(once, state, initialisations); }
  } at_exit{once, world_of(fiber).onces};
  at_exit.initialisations.begin(once, fiber);
  routine();
  at_exit.state = kOnceDone;
}

int run_in_fiber(Fiber& fiber, pthread_once_t* once, void (*routine)()) {
  Initialisations& initialisations = world_of(fiber).onces;
  for (;;) {
    int seen = state_of(once).load(std::memory_order_acquire);
    if ((seen & kOnceDone) != 0) return 0;
    const int mark = mark_of_progress();
    if (seen != mark) {
      if (!state_of(once).compare_exchange_strong(seen, mark, std::memory_order_acq_rel)) continue;
      run_routine(fiber, once, routine);
      return 0;
    }
    const Fiber* const by = initialisations.who(once);
    if (by == nullptr) return real_once(once, routine);  // another thread runs the routine
    initialisations.wait(once, fiber, InitialisationObserver("a once-only initialisation", *by));
  }
}

}  // namespace

int once_run(pthread_once_t* once, void (*routine)()) {
  if ((state_of(once).load(std::memory_order_acquire) & kOnceDone) != 0) [[likely]]
    return 0;
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_once(once, routine);
  return run_in_fiber(*fiber, once, routine);
}

std::span<const Interposed> once_functions() {
  static const std::array functions = {
      Interposed{"pthread_once", reinterpret_cast<const void*>(once_run)},
  };
  return functions;
}

void give_up_once(const void* object) {
  auto* const once = static_cast<pthread_once_t*>(const_cast<void*>(object));
  state_of(once).store(0, std::memory_order_release);
  wake_threads(once);
}

}  // namespace rehearse::exec::interpose
