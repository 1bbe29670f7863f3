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

// A separate thread that watches the threads that run worlds. It reports where a run is stuck, and asks a run whose
// time is over to end. It starts with the process's first run or TimeLimit.
//
// A run is stuck if a rank blocks in the kernel, in a call that Rehearse does not intercept. If the run has made no
// switch for ten seconds, and no thread of the process has computed, stderr names the rank, the call and its place. If
// threads compute, stderr names the rank and its place after thirty seconds, once for each run.
namespace rehearse::exec {

// The activity in which the watchdog found a run's thread.
struct Found {
  int rank = -1;             // -1: it was outside of ranks, or did not answer
  VirtualTime at{};          // the rank's time
  std::string call;          // see blocked_call()
  std::vector<void*> stack;  // as for CallSite::from_addresses(); empty if the thread did not answer
};

// "rank 2 is blocked in connect()", "rank 2 computes"
std::string what_it_does(const Found& found);

// The same with the place: "rank 2 is blocked in connect() at train.cpp:12 in step".
std::string describe(const Found& found);

// Finds out what a thread of this process does. It may be the calling thread. Blocks for up to a second if a signal
// does not reach the thread.
Found find_thread(pid_t thread);

// The call in which a thread is blocked in the kernel: "connect()", or "system call 451" if Rehearse does not know its
// name. Empty if the thread computes, or if the system does not say. The id of a process stands for its first thread.
std::string blocked_call(pid_t thread);

// For signal handlers with three arguments: the system call that the signal has interrupted, found from the third
// argument. "read()", or "a system call" if its name is unknown or the kernel does not restart it; empty if the thread
// computed. Async-signal-safe.
std::string_view interrupted_call(const void* context) noexcept;

// If a run makes no switch for a second or two after somebody asked it to end (request_interrupt()), the watchdog says
// on stderr what its rank does, and ends the line with `hint`: what ends the process at once. `hint` must live on.
// Null, the initial value: it says nothing.
void set_interrupt_hint(const char* hint) noexcept;

// Gives the calling thread's run `limit` of real time while the object lives. Then asks all runs of the process to end
// (interrupt.h). If an executor still runs on the calling thread a second later, calls `overdue` on the watchdog's
// thread; that may end the process.
class TimeLimit {
 public:
  using Overdue = std::function<void(const Found& found)>;

  TimeLimit(std::chrono::nanoseconds limit, Overdue overdue);
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  // Withdraws the request to end, if the object has made it. Requests of others stay.
  ~TimeLimit();

  // Whether the object has asked the run to end.
  bool is_over() const noexcept;

  struct State;  // shared with the watchdog

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace rehearse::exec
