// SPDX-License-Identifier: BSD-3-Clause
// Threads that a rank makes become fibers of that rank. std::thread, std::jthread and std::async build on these
// functions.

// Since libstdc++ 13, the state that a std::thread runs is private except to the library itself.
#define _GLIBCXX_THREAD_IMPL 1

#include <array>
#include <cerrno>
#include <exception>
#include <functional>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include <rehearse_internal/exec/interpreter.h>
#include <rehearse_internal/exec/native_scope.h>

#include "exec/executor/forks.h"
#include "exec/executor/rank_life.h"
#include "exec/executor/switcher.h"
#include "exec/interpose/real.h"
#include "exec/interpose/time/time_map.h"
#include "exec/interpose/world_state.h"
#include "exec/wait/polling.h"
#include "exec/wait/suspension.h"
#include "note_static_thread.h"
#include "openmp.h"

namespace rehearse::exec::interpose {

int thread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument)
    REHEARSE_INTERPOSES("pthread_create");
int thread_join(pthread_t thread, void** result) REHEARSE_INTERPOSES("pthread_join");
int thread_tryjoin(pthread_t thread, void** result) REHEARSE_INTERPOSES("pthread_tryjoin_np");
int thread_timedjoin(pthread_t thread, void** result, const timespec* until)
    REHEARSE_INTERPOSES("pthread_timedjoin_np");
int thread_detach(pthread_t thread) REHEARSE_INTERPOSES("pthread_detach");
void thread_exit(void* result) REHEARSE_INTERPOSES("pthread_exit");
pthread_t thread_self() REHEARSE_INTERPOSES("pthread_self");

// What a std::thread runs: has the virtual functions of std::thread::_State, which is private since GCC 13.
struct ThreadState {
  virtual ~ThreadState() = default;
  virtual void run() = 0;
};

// libstdc++ passes the state that a std::thread runs to pthread_create() as a bare pointer, which the thread must free.
// A world may end before the thread has begun; here a shared owner frees the state even then.
void std_thread_start(std::thread* thread, std::unique_ptr<ThreadState> state, void (*depend)())
    REHEARSE_INTERPOSES("_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");

namespace {

constinit Real<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> real_create("pthread_create");
constinit Real<int (*)(pthread_t, void**)> real_join("pthread_join");
constinit Real<int (*)(pthread_t, void**)> real_tryjoin("pthread_tryjoin_np");
constinit Real<int (*)(pthread_t, void**, const timespec*)> real_timedjoin("pthread_timedjoin_np");
constinit Real<int (*)(pthread_t)> real_detach("pthread_detach");
constinit Real<void (*)(void*)> real_thread_exit("pthread_exit");
constinit Real<pthread_t (*)()> real_self("pthread_self");
constinit Real<void (*)(std::thread*, std::unique_ptr<ThreadState>, void (*)())> real_start(
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");

// Called once. Returns the value for pthread_join().
using Routine = std::function<void*()>;

// Thrown by pthread_exit(), and caught at the start of the thread.
struct ThreadExit {
  void* result;
};

class JoinObserver final : public Observer {
 public:
  JoinObserver(int rank, pthread_t thread) : rank_(rank), thread_(thread) {}

 private:
  Wait describe() const override {
    return {.waits_on = fmt::format("the end of its thread {}", ThreadTable::fiber_of_rank(thread_)),
            .waits_for = {rank_}};
  }

  int rank_;
  pthread_t thread_;
};

void run_thread(MadeThread& made, const Routine& routine) {
  // If an exception leaves the thread, its rank fails, and joining fibers must not wait forever.
  struct Finish {
    MadeThread& made;
    ~Finish() {
      made.finished = true;
      made.joiners.notify_all();
    }
  } at_exit{made};
  try {
    made.result = routine();
  } catch (const ThreadExit& exit) {
    made.result = exit.result;
  }
}

bool asks_for_detached(const pthread_attr_t* attributes) {
  int state = PTHREAD_CREATE_JOINABLE;
  if (attributes != nullptr) ::pthread_attr_getdetachstate(attributes, &state);
  return state == PTHREAD_CREATE_DETACHED;
}

// libstdc++'s own function calls pthread_create(), which is ours, so it needs a NativeScope.
void start_exempt(std::thread* thread, std::unique_ptr<ThreadState> state, void (*depend)()) {
  const NativeScope native;
  real_start(thread, std::move(state), depend);
}

// Throws std::system_error if no stack can be allocated.
void create_in_fiber(Fiber& fiber, bool detached, Routine routine, pthread_t& handle) {
  note_if_static(fiber);
  const auto made = std::make_shared<MadeThread>();
  made->detached = detached;
  Fiber& helper =
      fiber.world->rank_life.spawn(fiber.rank, [made, routine = std::move(routine)] { run_thread(*made, routine); });
  helper.is_thread = true;
  handle = ThreadTable::handle_of(helper.rank, helper.fiber_of_rank);
  if (!detached) world_of(fiber).threads.add(handle, made);
  // Either fiber may run first. give_way() does not throw, as callers of pthread_create() expect.
  fiber.world->switcher.give_way(fiber);
}

// The threads of an ended world have ended; a static object may still join one when the process exits.
int join_after_world(void** result) {
  if (result != nullptr) *result = nullptr;
  return 0;
}

int join_in_fiber(Fiber& fiber, pthread_t thread, void** result, std::optional<VirtualTime> deadline) {
  ThreadTable& threads = world_of(fiber).threads;
  const auto made = threads.find(thread);
  if (made == nullptr) return ESRCH;
  if (thread == thread_self()) return EDEADLK;
  const JoinObserver observer(fiber.rank, thread);
  while (!made->finished) {
    const bool unwinds = fiber.world->outcome.ended_for(fiber) && std::uncaught_exceptions() > 0;
    if (unwinds) {
      // Called by a destructor (std::jthread's), which must not throw. The thread is unwinding too, so wait for it.
      if (!made->joiners.linger(observer)) abort_wait(fiber, observer);
    } else if (made->joiners.wait(observer, deadline) == WaitResult::timed_out && !made->finished) {
      return ETIMEDOUT;
    }
  }
  threads.remove(thread);
  if (result != nullptr) *result = made->result;
  return 0;
}

}  // namespace

int thread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_create(thread, attributes, start, argument);
  if (const char* const library = openmp_library_of(reinterpret_cast<const void*>(start))) {
    refuse_openmp(*fiber, library);
  }
  try {
    create_in_fiber(*fiber, asks_for_detached(attributes), [start, argument] { return start(argument); }, *thread);
  } catch (const std::system_error&) {
    return EAGAIN;
  }
  return 0;
}

void std_thread_start(std::thread* thread, std::unique_ptr<ThreadState> state, void (*depend)()) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_start(thread, std::move(state), depend);
  // The state is freed when the routine returns, before join() returns, as in libstdc++.
  auto routine = [owner = std::shared_ptr<ThreadState>(std::move(state))]() mutable -> void* {
    const auto running = std::move(owner);
    running->run();
    return nullptr;
  };
  static_assert(sizeof *thread == sizeof(pthread_t), "a std::thread is its handle");
  try {
    create_in_fiber(*fiber, false, std::move(routine), *reinterpret_cast<pthread_t*>(thread));
  } catch (const std::system_error& error) {
    throw std::system_error(EAGAIN, std::generic_category(), error.what());
  }
}

int thread_join(pthread_t thread, void** result) {
  Fiber* const fiber = current_fiber();
  if (!ThreadTable::is_handle(thread)) return real_join(thread, result);
  if (fiber == nullptr) return join_after_world(result);
  return join_in_fiber(*fiber, thread, result, std::nullopt);
}

int thread_tryjoin(pthread_t thread, void** result) {
  Fiber* const fiber = current_fiber();
  if (!ThreadTable::is_handle(thread)) return real_tryjoin(thread, result);
  if (fiber == nullptr) return join_after_world(result);
  const auto made = world_of(*fiber).threads.find(thread);
  if (made != nullptr && !made->finished) {
    poll(*fiber);
    if (!made->finished) return EBUSY;
  }
  return join_in_fiber(*fiber, thread, result, std::nullopt);
}

int thread_timedjoin(pthread_t thread, void** result, const timespec* until) {
  Fiber* const fiber = current_fiber();
  if (!ThreadTable::is_handle(thread)) return real_timedjoin(thread, result, until);
  if (fiber == nullptr) return join_after_world(result);
  if (until == nullptr) return join_in_fiber(*fiber, thread, result, std::nullopt);
  if (!valid(*until)) return EINVAL;
  return join_in_fiber(*fiber, thread, result, to_deadline(*until, epochs_of(*fiber).realtime));
}

int thread_detach(pthread_t thread) {
  Fiber* const fiber = current_fiber();
  if (!ThreadTable::is_handle(thread)) return real_detach(thread);
  if (fiber == nullptr) return 0;
  ThreadTable& threads = world_of(*fiber).threads;
  const auto made = threads.find(thread);
  if (made == nullptr) return ESRCH;
  made->detached = true;
  threads.remove(thread);
  return 0;
}

void thread_exit(void* result) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) {
    real_thread_exit(result);
  } else if (fiber->is_main()) {
    throw_from_c(*fiber, std::make_exception_ptr(std::logic_error("pthread_exit() was called on a rank's main thread; "
                                                                  "return from the rank's body instead")));
  }
  throw ThreadExit{result};
}

pthread_t thread_self() {
  if (interpreter() != nullptr) {
    const Fiber* const fiber = fiber_of_thread();
    return fiber != nullptr ? ThreadTable::handle_of(fiber->rank, fiber->fiber_of_rank) : id_of_forked(real_self());
  }
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || fiber->is_main()) return real_self();
  return ThreadTable::handle_of(fiber->rank, fiber->fiber_of_rank);
}

std::span<const Interposed> thread_functions() {
  static const std::array functions = {
      Interposed{"pthread_create", reinterpret_cast<const void*>(thread_create)},
      Interposed{"pthread_join", reinterpret_cast<const void*>(thread_join)},
      Interposed{"pthread_tryjoin_np", reinterpret_cast<const void*>(thread_tryjoin)},
      Interposed{"pthread_timedjoin_np", reinterpret_cast<const void*>(thread_timedjoin)},
      Interposed{"pthread_detach", reinterpret_cast<const void*>(thread_detach)},
      Interposed{"pthread_exit", reinterpret_cast<const void*>(thread_exit)},
      Interposed{"pthread_self", reinterpret_cast<const void*>(thread_self)},
      Interposed{"_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
                 reinterpret_cast<const void*>(std_thread_start), nullptr, reinterpret_cast<const void*>(start_exempt)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
