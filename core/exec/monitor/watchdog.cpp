// SPDX-License-Identifier: BSD-3-Clause
#include "quiet.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include <fmt/format.h>

#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/exec/signal_io.h>

namespace rehearse::exec {

using Time = std::chrono::steady_clock::time_point;

struct TimeLimit::State {
  pid_t thread;
  Time until;
  Overdue overdue;
  std::atomic<bool> over{false};
  bool is_reported = false;
};

namespace {

std::atomic<std::chrono::nanoseconds> g_tick{std::chrono::seconds(1)};
// How long the watchdog waits, after it has requested the end of a run, before it looks where the run is.
constexpr std::chrono::seconds kGrace{1};

std::chrono::nanoseconds cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::atomic<const char*> g_interrupt_hint{nullptr};

void say(const std::string& text) { write_at_once(STDERR_FILENO, text.data(), text.size()); }

double seconds(int samples) { return std::chrono::duration<double>(samples * g_tick.load()).count(); }

void say_stands_still(const Found& found) {
  say(fmt::format(
      "rehearse: nothing has moved for {} s: {}. All ranks share its thread, so none of them can go on until this call "
      "returns\n",
      seconds(Quiet::kSamplesMax), describe(found)));
}

void say_computes(const Found& found) {
  say(fmt::format(
      "rehearse: no rank has given way for {} s: {}. All ranks share its thread, so none of them can go on until it "
      "waits for others. A time limit (--time-limit) ends a run that never does\n",
      seconds(Quiet::kComputingMax), describe(found)));
}

void say_goes_on(const Found& found, const char* hint) {
  say(fmt::format("rehearse: the run is asked to end, and {}: it ends at the next switch; {}\n", describe(found),
                  hint));
}

class Watchdog {
 public:
  static Watchdog& of_process();

  void add(const std::uint64_t& switches) {
    const std::lock_guard lock(mutex_);
    runs_.push_back({.thread = ::gettid(), .switches = &switches});
    wake();
  }

  void remove(const std::uint64_t& switches) {
    const std::lock_guard lock(mutex_);
    std::erase_if(runs_, [&](const Run& run) { return run.switches == &switches; });
  }

  void add(std::shared_ptr<TimeLimit::State> limit) {
    const std::lock_guard lock(mutex_);
    limits_.push_back(std::move(limit));
    changed_.notify_one();
    wake();
  }

  void remove(const std::shared_ptr<TimeLimit::State>& limit) {
    const std::lock_guard lock(mutex_);
    std::erase(limits_, limit);
  }

 private:
  struct Run {
    pid_t thread;
    const std::uint64_t* switches;
    Quiet quiet = {};
    bool told_computes = false;
    int asked = 0;  // observations since somebody asked the run to end
  };

  void wake() {
    if (!std::exchange(started_, true)) {
      start();
    } else if (asleep_) {
      changed_.notify_one();
    }
  }

  void start() {
    // Signals must go to the program's threads.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { watch(); }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // When no run is left, the thread stays awake for a few ticks, because the next run may begin soon. Waking the
  // thread would cost that run more than idle ticks cost the processor.
  [[noreturn]] void watch() {
    std::unique_lock lock(mutex_);
    Time tick = std::chrono::steady_clock::now() + g_tick.load();
    for (int empty_ticks = 0;;) {
      if (empty_ticks > 5) {
        asleep_ = true;
        changed_.wait(lock);
        asleep_ = false;
        empty_ticks = 0;
        tick = std::chrono::steady_clock::now() + g_tick.load();
      }
      changed_.wait_until(lock, next_sample(tick));
      const Time now = std::chrono::steady_clock::now();
      enforce_limits(now);
      if (now < tick) continue;
      tick = now + g_tick.load();
      empty_ticks = runs_.empty() && limits_.empty() ? empty_ticks + 1 : 0;
      sample_runs();
    }
  }

  Time next_sample(Time tick) const {
    Time next = tick;
    for (const auto& limit : limits_) {
      if (!limit->is_reported) next = std::min(next, limit->over ? limit->until + kGrace : limit->until);
    }
    return next;
  }

  // Call it with the lock held, so that neither a limit nor its run can end during the call of overdue().
  void enforce_limits(Time now) {
    for (const auto& limit : limits_) {
      if (now >= limit->until && !limit->over.exchange(true)) request_interrupt_of_limit();
      if (limit->is_reported || now < limit->until + kGrace) continue;
      limit->is_reported = true;
      const auto is_its = [&](const Run& run) { return run.thread == limit->thread; };
      if (std::ranges::any_of(runs_, is_its)) limit->overdue(find_thread(limit->thread));
    }
  }

  void sample_runs() {
    const auto cpu = cpu_time();
    const auto idle = Quiet::kIdleCpu * std::chrono::duration<double>(g_tick.load()).count();
    for (Run& run : runs_) {
      const char* const hint = interrupt_requests.load() % kInterruptOfALimit != 0 ? g_interrupt_hint.load() : nullptr;
      run.asked = hint != nullptr ? run.asked + 1 : 0;
      if (run.quiet.sample(__atomic_load_n(run.switches, __ATOMIC_RELAXED), cpu,
                           std::chrono::duration_cast<std::chrono::nanoseconds>(idle))) {
        say_stands_still(find_thread(run.thread));
        run.quiet.discount(cpu_time());
      } else if (run.quiet.computes_long() && !std::exchange(run.told_computes, true)) {
        say_computes(find_thread(run.thread));
      }
      if (run.asked == 2 && run.quiet.unswitched() > 0) say_goes_on(find_thread(run.thread), hint);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Run> runs_;
  std::vector<std::shared_ptr<TimeLimit::State>> limits_;
  bool started_ = false;
  bool asleep_ = false;
};

// Never destroyed, because its thread runs until the process ends.
std::atomic<Watchdog*> g_watchdog{nullptr};

// A forked process has none of its parent's threads.
void forget_watchdog() { g_watchdog = nullptr; }

Watchdog& Watchdog::of_process() {
  static std::mutex mutex;
  static const int registered = ::pthread_atfork(nullptr, nullptr, forget_watchdog);
  static_cast<void>(registered);
  const std::lock_guard lock(mutex);
  if (g_watchdog == nullptr) g_watchdog = new Watchdog;
  return *g_watchdog;
}

}  // namespace

WatchedRun::WatchedRun(const std::uint64_t& switches) : switches_(switches) { Watchdog::of_process().add(switches_); }
WatchedRun::~WatchedRun() { Watchdog::of_process().remove(switches_); }

void set_interrupt_hint(const char* hint) noexcept { g_interrupt_hint = hint; }

void set_watchdog_tick(std::chrono::nanoseconds tick) noexcept { g_tick = tick; }

TimeLimit::TimeLimit(std::chrono::nanoseconds limit, Overdue overdue)
    : state_(std::make_shared<State>(::gettid(), std::chrono::steady_clock::now() + limit, std::move(overdue))) {
  Watchdog::of_process().add(state_);
}

TimeLimit::~TimeLimit() {
  Watchdog::of_process().remove(state_);
  if (is_over()) clear_interrupt_of_limit();
}

bool TimeLimit::is_over() const noexcept { return state_->over; }

}  // namespace rehearse::exec
