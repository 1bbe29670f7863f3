// SPDX-License-Identifier: BSD-3-Clause
// A library that waits by itself, as a driver does: for threads of its own, with locks of its own. The effect of each
// function shows whether libc blocked or Rehearse suspended a rank.
#include <condition_variable>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <sched.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

namespace {

// A pointer in the data segment, into which the loader writes the address at load time.
using Sleep = int (*)(useconds_t);
Sleep volatile g_sleep = usleep;

struct Answer {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  pid_t thread = 0;
};

void* answer(void* to) {
  auto& call = *static_cast<Answer*>(to);
  pthread_mutex_lock(&call.mutex);
  call.thread = gettid();
  pthread_cond_signal(&call.changed);
  pthread_mutex_unlock(&call.mutex);
  return nullptr;
}

}  // namespace

extern "C" {

long waiting_library_seconds() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec;
}

void waiting_library_sleep() {
  const timespec millisecond{0, 1'000'000};
  nanosleep(&millisecond, nullptr);
}

void waiting_library_sleep_by_pointer() { g_sleep(1'000); }

void waiting_library_yield() { sched_yield(); }

// Returns the id of the thread that answered.
pid_t waiting_library_ask_thread() {
  Answer call;
  pthread_t thread{};
  pthread_create(&thread, nullptr, answer, &call);
  pthread_mutex_lock(&call.mutex);
  while (call.thread == 0) pthread_cond_wait(&call.changed, &call.mutex);
  pthread_mutex_unlock(&call.mutex);
  pthread_join(thread, nullptr);
  return call.thread;
}

// Does what waiting_library_ask_thread() does, but through the C++ library, and with a static variable, whose
// initialisation locks a guard.
pid_t waiting_library_ask_std_thread() {
  static const pid_t process = getpid();
  std::mutex mutex;
  std::condition_variable changed;
  pid_t answered = 0;
  std::thread thread([&] {
    const std::lock_guard lock(mutex);
    answered = process > 0 ? gettid() : 0;
    changed.notify_one();
  });
  {
    std::unique_lock lock(mutex);
    while (answered == 0) changed.wait(lock);
  }
  thread.join();
  return answered;
}

}  // extern "C"
