// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include <rehearse/exec/time.h>

// A thread of its own sees from outside what the threads that run worlds do. It decides nothing in a run: it says where
// one stands still, and asks one to end whose time is over. It begins with the process's first run.
//
// A run whose rank has blocked in the kernel (a call that Rehearse does not see) neither switches nor computes. After
// ten seconds of that, stderr says which rank it is, in which call, and where.
namespace rehearse::exec {

// What a run's thread was found doing.
struct Found {
  int rank = -1;             // -1: it was outside of ranks
  VirtualTime at{};          // of the rank
  std::string call;          // "connect()": it is blocked in the kernel; empty: it computes
  std::vector<void*> stack;  // as CallSite::from_addresses() takes it; empty when the thread did not answer
};

// "rank 2 is blocked in connect()", "rank 2 computes"
std::string what_it_does(const Found& found);

// The same with its place: "rank 2 is blocked in connect() at train.cpp:12 in step".
std::string describe(const Found& found);

// Where the thread (of this process) is. May be the calling one. Blocks for a second at most, where a signal does not
// reach it.
Found find_thread(pid_t thread);

// The call in which a thread (or a process's first one) is blocked in the kernel: "connect()"; empty when it computes,
// or the system does not tell.
std::string blocked_call(pid_t thread);

// The call in the kernel that a signal handler of three arguments has interrupted, by the third one: "read()", or "a
// system call" of one that is not begun again; empty when the thread computed. Async-signal-safe.
std::string_view interrupted_call(const void* context) noexcept;

// While it lives, the calling thread's run has `limit` of real time: then it is asked to end (interrupt.h). Where it
// has come to no switch a second later, `overdue` is called, on the watchdog's thread; it may end the process.
class TimeLimit {
 public:
  using Overdue = std::function<void(const Found& found)>;

  TimeLimit(std::chrono::nanoseconds limit, Overdue overdue);
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  // Takes its request to end back.
  ~TimeLimit();

  // Has the run been asked to end?
  bool is_over() const noexcept;

  struct State;  // what the watchdog knows of it

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace rehearse::exec
