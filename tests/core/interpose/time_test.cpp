// SPDX-License-Identifier: BSD-3-Clause
// Sleeps and clocks are virtual in a rank, and a loop that only reads the clock reaches its time limit.
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include <semaphore.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class Time : public Worlds {};
REHEARSE_IN_WORLDS(Time);

TEST_P(Time, EverySleep_TakesVirtualTimeOnly) {
  auto w = world();
  const auto outcome = w.run([](int) {
    std::this_thread::sleep_for(1h);
    EXPECT_EQ(this_rank::now(), at(1h));
    std::this_thread::sleep_until(std::chrono::steady_clock::now() + 1h);
    EXPECT_EQ(this_rank::now(), at(2h));
    std::this_thread::sleep_until(std::chrono::system_clock::now() + 1h);
    EXPECT_EQ(this_rank::now(), at(3h));
    EXPECT_EQ(::sleep(3'600), 0u);
    EXPECT_EQ(this_rank::now(), at(4h));
    EXPECT_EQ(::usleep(500'000), 0);
    const timespec half{0, 500'000'000};
    EXPECT_EQ(::nanosleep(&half, nullptr), 0);
    EXPECT_EQ(this_rank::now(), at(4h + 1s));
    timespec until{};
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    ++until.tv_sec;
    EXPECT_EQ(::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr), 0);
    EXPECT_EQ(::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr), 0);
    EXPECT_EQ(this_rank::now(), at(4h + 2s));
    const timespec wrong{0, 1'000'000'000};
    EXPECT_EQ(::nanosleep(&wrong, nullptr), -1);
    EXPECT_EQ(errno, EINVAL);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

// A deadline of any year before the world's is over at once, although its distance from now may not fit into a
// duration.
TEST_P(Time, DeadlineBeforeTheWorld_IsOver) {
  constexpr auto seconds_min = std::chrono::ceil<std::chrono::seconds>(VirtualDuration::min()).count();
  auto w = world();
  std::mutex held;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      const std::lock_guard lock(held);
      std::this_thread::sleep_for(1s);
      return;
    }
    this_rank::sleep_for(1ms);
    std::mutex own;
    std::unique_lock lock(own);
    std::condition_variable changed;
    EXPECT_EQ(changed.wait_until(lock, std::chrono::system_clock::time_point::min()), std::cv_status::timeout);
    for (const time_t seconds : {std::numeric_limits<time_t>::min(), seconds_min, seconds_min + 1, time_t{-1}}) {
      const timespec until{seconds, 0};
      auto* const cond = changed.native_handle();
      EXPECT_EQ(::pthread_cond_clockwait(cond, own.native_handle(), CLOCK_REALTIME, &until), ETIMEDOUT) << seconds;
      EXPECT_EQ(::pthread_cond_clockwait(cond, own.native_handle(), CLOCK_MONOTONIC, &until), ETIMEDOUT) << seconds;
      EXPECT_EQ(::pthread_mutex_timedlock(held.native_handle(), &until), ETIMEDOUT) << seconds;
      sem_t semaphore;
      EXPECT_EQ(::sem_init(&semaphore, 0, 0), 0);
      EXPECT_EQ(::sem_timedwait(&semaphore, &until), -1) << seconds;
      EXPECT_EQ(::sem_destroy(&semaphore), 0);
      pthread_t sleeper{};
      const auto sleep = [](void*) -> void* { return std::this_thread::sleep_for(1ms), nullptr; };
      EXPECT_EQ(::pthread_create(&sleeper, nullptr, sleep, nullptr), 0);
      EXPECT_EQ(::pthread_timedjoin_np(sleeper, nullptr, &until), ETIMEDOUT) << seconds;
      EXPECT_EQ(::pthread_join(sleeper, nullptr), 0);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(1s));
}

TEST_P(Time, Clocks_StartAtTheirDocumentedPoints) {
  auto w = world();
  int compared = 0;
  const auto outcome = w.run([&](int) {
    constexpr time_t year_2020 = 1'577'836'800;
    this_rank::sleep_for(1'500ms);
    EXPECT_EQ(::time(nullptr), year_2020 + 1);
    timeval day{};
    EXPECT_EQ(::gettimeofday(&day, nullptr), 0);
    EXPECT_EQ(day.tv_sec, year_2020 + 1);
    EXPECT_EQ(day.tv_usec, 500'000);
    EXPECT_EQ(std::chrono::system_clock::now().time_since_epoch(), std::chrono::seconds(year_2020) + 1'500ms);
    EXPECT_EQ(std::chrono::steady_clock::now().time_since_epoch(), 1'001'500ms);
    for (clockid_t clock :
         {CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_BOOTTIME_ALARM}) {
      timespec time{};
      EXPECT_EQ(::clock_gettime(clock, &time), 0);
      EXPECT_EQ(time.tv_sec, 1'001);
      EXPECT_EQ(time.tv_nsec, 500'000'000);
      ++compared;
    }
    for (clockid_t clock : {CLOCK_REALTIME, CLOCK_REALTIME_COARSE, CLOCK_REALTIME_ALARM, CLOCK_TAI}) {
      timespec time{};
      EXPECT_EQ(::clock_gettime(clock, &time), 0);
      EXPECT_EQ(time.tv_sec, year_2020 + 1);
      ++compared;
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(1'500ms));
  EXPECT_EQ(compared, 9 * ranks());
}

// The kernel's own answer must lie between two readings through libc.
TEST_P(Time, CpuTime_IsReal) {
  const auto nanoseconds = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
  auto w = world();
  int compared = 0;
  const auto outcome = w.run([&](int) {
    timespec before{}, real{}, after{};
    EXPECT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before), 0);
    this_rank::sleep_for(1h);
    EXPECT_EQ(::syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &real), 0);
    EXPECT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after), 0);
    EXPECT_LT(nanoseconds(before), nanoseconds(real));
    EXPECT_LT(nanoseconds(real), nanoseconds(after));
    ++compared;
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(1h));
  EXPECT_EQ(compared, ranks());
}

TEST_P(Time, LoopOnTheClock_Ends) {
  auto w = world();
  const auto outcome = w.run([](int) {
    const auto end = std::chrono::steady_clock::now() + 30min;
    while (std::chrono::steady_clock::now() < end) {
    }
    EXPECT_GE(this_rank::now(), at(30min));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_LT(outcome.end_time, at(30min + 2s));
}

// Rank 0 polls until its own time limit, which comes before the sleeps of the other ranks end.
TEST_P(Time, LoopWithATimeLimit_KeepsItBesideLaterTimers) {
  auto w = world();
  bool given_up = false;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      const auto end = std::chrono::steady_clock::now() + 10s;
      while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
      EXPECT_LT(this_rank::now(), at(12s));
      given_up = true;
    } else {
      std::this_thread::sleep_for(1h);
      EXPECT_TRUE(given_up);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Time, LoopOnYield_SeesWhatOthersDo) {
  auto w = world();
  int ready = 0;
  const auto outcome = w.run([&](int rank) {
    while (ready != rank) std::this_thread::yield();
    std::this_thread::sleep_for(1ms);
    ++ready;
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(1ms * ranks()));
}

TEST_P(Time, LoopOnYieldForNothing_IsALivelock) {
  auto w = world();
  w.options.idle_polls_max = 20;
  const auto outcome = w.run([](int) {
    for (;;) std::this_thread::yield();
  });
  EXPECT_EQ(outcome.ending, Ending::livelock);
  EXPECT_EQ(outcome.blocked.size(), static_cast<std::size_t>(ranks()));
}

// While a rank unwinds, it may read the clock or wait for a later time. Neither delays the end of the world.
TEST_P(Time, ClockReadsAtTheEnd_DoNotHang) {
  auto w = world();
  int unwound = 0;
  const auto outcome = w.run([&](int rank) {
    try {
      if (rank == 0) {
        std::this_thread::sleep_for(1ms);  // by then, all others have started
        throw std::runtime_error("boom");
      }
      for (;;) std::this_thread::sleep_for(1h);
    } catch (const RankAborted&) {
      for (int k = 0; k < 100; ++k) std::chrono::steady_clock::now();
      ++unwound;
      const auto end = std::chrono::steady_clock::now() + 1s;
      while (std::chrono::steady_clock::now() < end) {
      }
      ADD_FAILURE() << "time passed in a world that has ended";
    }
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(outcome.end_time, at(1ms));
  EXPECT_EQ(unwound, ranks() - 1);
}

// Moves on by itself, as the clock of a real run does. Each reading is a microsecond later.
class PassingClock final : public Clock {
 public:
  VirtualTime now() const noexcept override { return kTimeZero + 1us * ++looks_; }
  Epochs epochs() const noexcept override { return {.realtime = 5'000s, .monotonic = 70s}; }
  bool passes_by_itself() const noexcept override { return true; }
  void advance_to(VirtualTime) noexcept override {}

 private:
  mutable std::int64_t looks_ = 0;
};

RunOutcome run_in_passing_time(World& w, const std::function<void(int)>& body) {
  PassingClock clock;
  Decisions decisions(w.oracle, w.log);
  RankExecutor executor(w.options, decisions, clock, w.state, w.sink);
  return executor.run(body);
}

TEST(PassingTime, MillionReads_SwitchToNoOtherFiber) {
  World w(2);
  int turns = 0;
  const auto outcome = run_in_passing_time(w, [&](int) {
    const int before = ++turns;
    auto last = std::chrono::steady_clock::now();
    for (int k = 0; k < 1'000'000; ++k) {
      const auto now = std::chrono::steady_clock::now();
      if (now <= last) ADD_FAILURE() << "time stood still at read " << k;
      last = now;
    }
    EXPECT_EQ(turns, before);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.switches, 2u);
  EXPECT_GT(outcome.end_time, at(2s));
}

TEST(PassingTime, ClocksAndDeadlines_AreByTheClocksOwnEpochs) {
  World w(1);
  const auto outcome = run_in_passing_time(w, [&](int) {
    const auto realtime = std::chrono::system_clock::now().time_since_epoch() - 5'000s;
    const auto monotonic = std::chrono::steady_clock::now().time_since_epoch() - 70s;
    EXPECT_GT(realtime, 0s);
    EXPECT_GT(monotonic, realtime);
    EXPECT_LT(monotonic, 1s);
    EXPECT_EQ(::time(nullptr), 5'000);
    std::this_thread::sleep_until(std::chrono::steady_clock::now() + 1ms);
    EXPECT_GE(std::chrono::steady_clock::now().time_since_epoch() - 70s, monotonic + 1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

}  // namespace
}  // namespace rehearse::exec::test
