// SPDX-License-Identifier: BSD-3-Clause
// From outside, the watchdog sees where the run's thread is, whether it moves, and whether the run's time is over.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/exec/signal_io.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"
#include "exec/monitor/quiet.h"

// These functions are outside namespace rehearse, as user code is. Without line tables, reports take the functions of
// that namespace for library code.
[[gnu::noinline]] void pass_gate(int file) {
  char byte = 0;
  EXPECT_EQ(rehearse::exec::read_at_once(file, &byte, 1), 1);
}

[[gnu::noinline]] void compute_until(const std::atomic<bool>& enough) {
  while (!enough) {
  }
}

namespace rehearse::exec::test {
namespace {

TEST(WatchdogQuiet, TenLooksWithoutProgress_ReportAStandstillOnce) {
  Quiet quiet;
  int told = 0;
  for (int sample = 1; sample <= 30; ++sample) {
    const bool tells = quiet.sample(5, 1s + sample * 20ms);
    EXPECT_EQ(tells, sample == 11) << sample;
    told += tells ? 1 : 0;
  }
  EXPECT_EQ(told, 1);
  // The run moved, and stands still again.
  EXPECT_FALSE(quiet.sample(6, 2s));
  for (int sample = 1; sample <= 10; ++sample) EXPECT_EQ(quiet.sample(6, 2s), sample == 10) << sample;
}

TEST(WatchdogQuiet, WhatSwitchesOrComputes_IsNone) {
  Quiet switching, computing;
  for (std::uint64_t sample = 1; sample <= 100; ++sample) {
    EXPECT_FALSE(switching.sample(sample, 0s));
    EXPECT_FALSE(computing.sample(5, sample * 21ms));
  }
}

TEST(WatchdogQuiet, ThirtyLooksAtARankThatComputes_ReportItOnce) {
  Quiet computing, standing, switching;
  for (std::uint64_t sample = 1; sample <= 100; ++sample) {
    computing.sample(5, sample * 1s);
    EXPECT_EQ(computing.computes_long(), sample == 31) << sample;
    standing.sample(5, 0s);
    switching.sample(sample / 30, sample * 1s);
    EXPECT_FALSE(standing.computes_long() || switching.computes_long()) << sample;
  }
}

// A pipe to which nobody writes before open(), so readers block in the kernel.
class Gate {
 public:
  Gate() { EXPECT_EQ(::pipe(files_), 0); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() {
    ::close(files_[0]);
    ::close(files_[1]);
  }
  void pass() const { pass_gate(files_[0]); }
  // Repeats the read if a signal interrupts it.
  void wait_by_libc() const {
    char byte = 0;
    while (::read(files_[0], &byte, 1) != 1) {
    }
  }
  void open() const { EXPECT_EQ(write_at_once(files_[1], "x", 1), 1); }

 private:
  int files_[2] = {-1, -1};
};

// Has no time limit of its own: if the thread never blocks, the test runner's limit ends the test.
void wait_until_blocked(pid_t thread) {
  while (blocked_call(thread) != "read()") std::this_thread::yield();
}

TEST(Watchdog, ThreadThatIsBlocked_IsFoundWithRankCallAndPlace) {
  const Gate gate;
  std::atomic<pid_t> thread{0};
  std::thread runs([&] {
    World w(3);
    const auto outcome = w.run([&](int rank) {
      this_rank::sleep_for(1s * rank);
      if (rank != 1) return;
      thread = ::gettid();
      gate.pass();
    });
    EXPECT_EQ(outcome.ending, Ending::all_returned);
  });
  while (thread == 0) std::this_thread::yield();
  wait_until_blocked(thread);
  const Found found = find_thread(thread);
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.at, at(1s));
  EXPECT_EQ(found.call, "read()");
  EXPECT_EQ(what_it_does(found), "rank 1 is blocked in read()");
  EXPECT_EQ(describe(found).find("rank 1 is blocked in read() at watchdog_test.cpp:"), 0u) << describe(found);
  gate.open();
  runs.join();
}

TEST(Watchdog, ThreadOutsideOfRanks_IsFoundToo) {
  const Gate gate;
  std::atomic<pid_t> thread{0};
  std::thread blocked([&] {
    thread = ::gettid();
    gate.pass();
  });
  while (thread == 0) std::this_thread::yield();
  wait_until_blocked(thread);
  const Found found = find_thread(thread);
  EXPECT_EQ(found.rank, -1);
  EXPECT_EQ(what_it_does(found), "the thread of the ranks is blocked in read()");
  gate.open();
  blocked.join();
}

std::atomic<bool> g_handled{false};
std::string_view g_interrupted;

void note_interrupted_call(int, siginfo_t*, void* context) {
  g_interrupted = interrupted_call(context);
  g_handled = true;
}

std::string_view interrupted_call_of(std::thread& thread, int flags) {
  struct sigaction action{};
  action.sa_sigaction = note_interrupted_call;
  action.sa_flags = SA_SIGINFO | flags;
  struct sigaction before{};
  sigaction(SIGUSR1, &action, &before);
  g_handled = false;
  ::pthread_kill(thread.native_handle(), SIGUSR1);
  while (!g_handled) std::this_thread::yield();
  sigaction(SIGUSR1, &before, nullptr);
  return g_interrupted;
}

TEST(Watchdog, HandlerInABlockedThread_KnowsTheCall) {
  for (const int flags : {SA_RESTART, 0}) {
    const Gate gate;
    std::atomic<pid_t> thread{0};
    std::thread blocked([&] {
      thread = ::gettid();
      gate.wait_by_libc();
    });
    while (thread == 0) std::this_thread::yield();
    wait_until_blocked(thread);
    EXPECT_EQ(interrupted_call_of(blocked, flags), flags == SA_RESTART ? "read()" : "a system call");
    gate.open();
    blocked.join();
  }
}

TEST(Watchdog, HandlerInAThreadThatComputes_KnowsNoCall) {
  std::atomic<bool> runs{false}, enough{false};
  std::thread computes([&] {
    runs = true;
    while (!enough) {
    }
  });
  while (!runs) std::this_thread::yield();
  EXPECT_EQ(interrupted_call_of(computes, SA_RESTART), "");
  enough = true;
  computes.join();
}

TEST(Watchdog, ThreadThatComputes_IsInNoCall) {
  std::atomic<pid_t> thread{0};
  std::atomic<bool> enough{false};
  std::thread computes([&] {
    thread = ::gettid();
    while (!enough) {
    }
  });
  while (thread == 0) std::this_thread::yield();
  EXPECT_EQ(blocked_call(thread), "");
  enough = true;
  computes.join();
}

// Returns the first line that the process writes to stderr while rank 1 of a world computes until that line comes.
std::string said_of_a_rank_that_computes() {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  std::string said;
  std::atomic<bool> enough{false};
  std::thread reads([&] {
    for (char byte = 0; byte != '\n' && read_at_once(ends[0], &byte, 1) == 1;) said.push_back(byte);
    enough = true;
  });
  World w(2);
  w.run([&](int rank) {
    if (rank == 1) compute_until(enough);
  });
  reads.join();
  ::dup2(before, STDERR_FILENO);
  for (const int file : {before, ends[0], ends[1]}) ::close(file);
  return said;
}

// On a machine that is busy with other work, a process that computes may look as if it stood still.
TEST(Watchdog, RankThatComputesForLong_IsSaid) {
  set_watchdog_tick(20ms);
  std::string said;
  for (int i = 0; i < 5 && !said.starts_with("rehearse: no rank has given way"); ++i)
    said = said_of_a_rank_that_computes();
  set_watchdog_tick(1s);
  EXPECT_EQ(said.find("rehearse: no rank has given way for 0.6 s: rank 1 computes at watchdog_test.cpp:"), 0u) << said;
  EXPECT_NE(said.find(" A time limit (--time-limit) ends a run that never does"), said.npos) << said;
}

TEST(TimeLimits, RunThatSwitchesForEver_IsInterrupted) {
  for (int ranks : {2, 3, 8}) {
    {
      const TimeLimit limit(1ms, [](const Found&) { FAIL() << "it switches"; });
      World w(ranks);
      const auto outcome = w.run([](int) {
        for (;;) this_rank::yield();
      });
      EXPECT_EQ(outcome.ending, Ending::interrupted);
      EXPECT_TRUE(limit.is_over());
    }
    EXPECT_FALSE(interrupt_requested());
    World w(ranks);
    EXPECT_EQ(w.run([](int) {}).ending, Ending::all_returned);
  }
}

// A Ctrl-C that comes after the limit is another request, and the limit does not withdraw it.
TEST(TimeLimits, RequestOfAnother_OutlivesTheLimit) {
  {
    const TimeLimit limit(1ms, [](const Found&) {});
    while (!limit.is_over()) std::this_thread::yield();
    request_interrupt();
  }
  EXPECT_TRUE(interrupt_requested());
  clear_interrupt();
  EXPECT_FALSE(interrupt_requested());
}

// Each limit that is over asks until its own end.
TEST(TimeLimits, TwoThatAreOver_AskUntilBothEnd) {
  const auto is_over = [](const TimeLimit& limit) {
    while (!limit.is_over()) std::this_thread::yield();
  };
  {
    const TimeLimit outer(1ms, [](const Found&) {});
    is_over(outer);
    {
      const TimeLimit inner(1ms, [](const Found&) {});
      is_over(inner);
    }
    EXPECT_TRUE(interrupt_requested());
  }
  EXPECT_FALSE(interrupt_requested());
}

TEST(TimeLimits, RunThatEndsBefore_NoticesNothing) {
  const TimeLimit limit(1h, [](const Found&) { FAIL() << "it has an hour"; });
  World w(3);
  EXPECT_EQ(w.run([](int) { this_rank::yield(); }).ending, Ending::all_returned);
  EXPECT_FALSE(limit.is_over());
}

// A busy machine may need longer than a short limit to bring rank 1 to its call. Then the run ends before the call, and
// another run gets more time.
TEST(TimeLimits, RankThatNeverSwitches_IsReportedAndEndsAtItsNextSwitch) {
  Found told;
  bool came = false;
  for (auto time = 1ms; !came; time *= 4) {
    const Gate gate;
    const TimeLimit limit(time, [&](const Found& found) {
      told = found;
      gate.open();
    });
    World w(2);
    const auto outcome = w.run([&](int rank) {
      if (rank == 1) {
        came = true;
        gate.pass();
      }
      for (;;) this_rank::yield();
    });
    EXPECT_EQ(outcome.ending, Ending::interrupted);
  }
  EXPECT_EQ(what_it_does(told), "rank 1 is blocked in read()");
}

// Runs in a process of its own, because the watchdog writes to stderr.
TEST(WatchdogDeathTest, RunThatStandsStill_SaysWhere) {
  EXPECT_EXIT(
      {
        set_watchdog_tick(10ms);
        const Gate gate;
        const TimeLimit limit(2s, [](const Found&) { ::_exit(3); });
        World w(2);
        w.run([&](int rank) {
          if (rank == 1) gate.pass();
        });
      },
      ::testing::ExitedWithCode(3),
      "rehearse: nothing has moved for 0.1 s: rank 1 is blocked in read\\(\\) at watchdog_test.cpp:");
}

// Runs two ranks, of which rank 1 asks the run to end, and computes until the watchdog has said something. Ends the
// process.
[[noreturn]] void compute_until_told() {
  int ends[2];
  std::atomic<bool> enough{false};
  const int shown = ::dup(STDERR_FILENO);
  if (::pipe(ends) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) ::_exit(5);
  std::thread reader([&] {
    char text[1024];
    const auto size = read_at_once(ends[0], text, sizeof text);
    write_at_once(shown, text, static_cast<std::size_t>(size));
    enough = true;
  });
  set_watchdog_tick(2ms);
  set_interrupt_hint("so it is");
  World w(2);
  const auto outcome = w.run([&](int rank) {
    if (rank != 1) return;
    request_interrupt();
    compute_until(enough);
    this_rank::yield();
  });
  ::_exit(outcome.ending == Ending::interrupted ? 3 : 4);
}

TEST(WatchdogDeathTest, RunThatIsAskedToEndAndGoesOn_SaysWhy) {
  EXPECT_EXIT(
      compute_until_told(), ::testing::ExitedWithCode(3),
      "^rehearse: the run is asked to end, and rank 1 computes at watchdog_test.cpp:[0-9]+ in compute_until: it "
      "ends at the next switch; so it is");
}

}  // namespace
}  // namespace rehearse::exec::test
