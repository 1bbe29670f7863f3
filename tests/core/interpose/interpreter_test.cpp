// SPDX-License-Identifier: BSD-3-Clause
// What changes for ranks in a process with an interpreter. The interpreter here runs no language: it only answers.
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include <rehearse_internal/exec/interpreter.h>
#include <rehearse_internal/exec/native_scope.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Two frames, the inner one of a library.
class TwoFrames final : public Interpreter {
 public:
  TwoFrames() { set_interpreter(this); }
  ~TwoFrames() override { set_interpreter(nullptr); }

  std::size_t frames(std::span<void*> out) noexcept override {
    const std::array all = {pages_ + 16, pages_ + 32};
    const auto count = std::min(out.size(), all.size());
    std::copy_n(all.begin(), count, out.begin());
    return count;
  }
  AddressRange addresses() const noexcept override {
    const auto begin = reinterpret_cast<std::uintptr_t>(pages_);
    return {begin, begin + kBytes};
  }
  ResolvedAddress resolve(std::uintptr_t address) override {
    if (address == addresses().begin + 16) return {{"wrapper", "/usr/lib/python3/functools.py", 7}, false};
    return {{"Trainer.run", "/src/train.py", 42}, true};
  }
  bool owns_condition(const void* condition) const noexcept override { return condition == own; }
  std::unique_ptr<RankState> state_around(RankState&) override { return nullptr; }
  void note_fork() noexcept override { ++forks; }

  const void* own = nullptr;
  int forks = 0;

 private:
  static constexpr std::size_t kBytes = 4096;
  char* const pages_ =
      static_cast<char*>(::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
};

class InterpretedRanks : public Worlds {};
REHEARSE_IN_WORLDS(InterpretedRanks);

struct Destroyed {
  int& count;
  ~Destroyed() { ++count; }
};

TEST_P(InterpretedRanks, OfAnEndedWorld_AreNotUnwound) {
  const TwoFrames interpreter;
  auto w = world();
  std::mutex mutex;
  int destroyed = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      this_rank::sleep_for(1s);
      throw std::runtime_error("over");
    }
    const Destroyed local{destroyed};
    if (rank == 1) mutex.lock();
    if (rank > 1) mutex.lock();
    this_rank::sleep_for(1h);
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(destroyed, 0);
  EXPECT_THAT(w.sink.told, ElementsAre("rank 0: over"));
  EXPECT_THAT(outcome.blocked, SizeIs(static_cast<std::size_t>(ranks() - 1)));
}

TEST_P(InterpretedRanks, FailInACallOfLibc_WithoutUnwinding) {
  const TwoFrames interpreter;
  auto w = world();
  int destroyed = 0;
  const auto outcome = w.run([&](int rank) {
    const Destroyed local{destroyed};
    if (rank == 1) pthread_exit(nullptr);
    this_rank::sleep_for(1s);
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(outcome.ranks[1], RankEnd::failed);
  EXPECT_EQ(destroyed, 0);
  EXPECT_THAT(w.sink.told, ElementsAre("rank 1: pthread_exit() was called on a rank's main thread; return from the "
                                       "rank's body instead"));
}

TEST_P(InterpretedRanks, HaveTheirOwnThreadIds) {
  const TwoFrames interpreter;
  auto w = world();
  std::set<pthread_t> ids{pthread_self()};
  w.run([&](int) {
    const auto id = pthread_self();
    ids.insert(id);
    this_rank::yield();
    EXPECT_EQ(pthread_self(), id);
    const NativeScope native;
    EXPECT_EQ(pthread_self(), id);
  });
  EXPECT_THAT(ids, SizeIs(static_cast<std::size_t>(ranks() + 1)));
}

TEST_P(InterpretedRanks, HaveItsFramesInTheirCallSites) {
  const TwoFrames interpreter;
  auto w = world();
  w.run([&](int) {
    const auto site = CallSite::capture();
    EXPECT_EQ(site.describe(), "train.py:42 in Trainer.run");
    EXPECT_EQ(site.frames().front().function, "wrapper");
    EXPECT_EQ(site.place().file, "/src/train.py");
  });
}

TEST_P(InterpretedRanks, MayGoOnInAForkedProcess) {
  TwoFrames interpreter;
  auto w = world();
  const auto outcome = w.run([&](int rank) {
    const auto id = pthread_self();
    const auto process = ::fork();
    if (process == 0) {
      std::this_thread::sleep_for(1us);  // libc's own by now
      ::_exit(interpreter.forks == 1 && pthread_self() == id ? 10 + rank % 100 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(process, &status, 0), process);
    EXPECT_EQ(WEXITSTATUS(status), 10 + rank % 100);
    EXPECT_EQ(pthread_self(), id);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(interpreter.forks, 0);
}

TEST_P(InterpretedRanks, TryLocksBeforeTheyWait_WithoutPolling) {
  const TwoFrames interpreter;
  auto w = world();
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const auto outcome = w.run([&](int) {
    for (int i = 0; i < 500; ++i) EXPECT_EQ(sem_trywait(&semaphore), -1);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(0ms));
  sem_destroy(&semaphore);
}

TEST_P(InterpretedRanks, ThatOnlyTryALock_EndAsALivelock) {
  const TwoFrames interpreter;
  auto w = world();
  w.options.idle_polls_max = 100;
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const auto outcome = w.run([&](int rank) {
    while (rank == 0 && sem_trywait(&semaphore) != 0) continue;
  });
  EXPECT_EQ(outcome.ending, Ending::livelock);
  sem_destroy(&semaphore);
}

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int reader() const { return ends_[0]; }
  void write_something() const { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }

 private:
  int ends_[2] = {-1, -1};
};

int select_on(int file, timeval* timeout) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(file, &set);
  const int ready = ::select(file + 1, &set, nullptr, nullptr, timeout);
  EXPECT_EQ(FD_ISSET(file, &set) ? 1 : 0, ready);
  return ready;
}

TEST_P(InterpretedRanks, WaitForFilesInVirtualTime) {
  const TwoFrames interpreter;
  auto w = world();
  const Pipe pipe;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      this_rank::sleep_for(1s);
      pipe.write_something();
      return;
    }
    pollfd file{pipe.reader(), POLLIN, 0};
    timespec tenth{0, 100'000'000};
    EXPECT_EQ(::poll(&file, 1, 200), 0);
    EXPECT_EQ(this_rank::now(), at(200ms));
    EXPECT_EQ(::ppoll(&file, 1, &tenth, nullptr), 0);
    EXPECT_EQ(this_rank::now(), at(300ms));
    timeval fifth{0, 200'000};
    EXPECT_EQ(select_on(pipe.reader(), &fifth), 0);
    EXPECT_EQ(this_rank::now(), at(500ms));
    EXPECT_EQ(select_on(pipe.reader(), nullptr), 1);
    EXPECT_GE(this_rank::now(), at(1s));
    EXPECT_LE(this_rank::now(), at(1s + 5ms));
    EXPECT_EQ(::poll(&file, 1, -1), 1);
    const int epoll = ::epoll_create1(0);
    epoll_event event{.events = EPOLLIN, .data = {}};
    EXPECT_EQ(::epoll_wait(epoll, &event, 1, 5), 0);
    EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, pipe.reader(), &event), 0);
    EXPECT_EQ(::epoll_wait(epoll, &event, 1, -1), 1);
    EXPECT_EQ(::epoll_pwait(epoll, &event, 1, 5, nullptr), 1);
    ::close(epoll);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(InterpretedRanks, WaitForTheirChildrenInRealTime) {
  const TwoFrames interpreter;
  auto w = world();
  const Pipe pipe;
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) return;
    const pid_t child = ::fork();
    if (child == 0) {
      ::usleep(50'000);
      pipe.write_something();
      ::usleep(50'000);
      ::_exit(3);
    }
    pollfd file{pipe.reader(), POLLIN, 0};
    EXPECT_EQ(::poll(&file, 1, 10), 1);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, WNOHANG), child);
    EXPECT_EQ(WEXITSTATUS(status), 3);
    EXPECT_EQ(::waitpid(child, &status, WNOHANG), -1);
    EXPECT_EQ(this_rank::now(), at(0ms));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

// While a thread that is no rank's holds the interpreter's lock, no other rank runs.
TEST_P(InterpretedRanks, WaitForTheInterpretersLockAsThreadsDo) {
  TwoFrames interpreter;
  auto w = world();
  std::mutex mutex;
  std::condition_variable given;
  interpreter.own = given.native_handle();
  bool waits = false, is_given = false;
  std::thread holder([&] {
    for (std::unique_lock lock(mutex); !waits; lock.lock()) {
      lock.unlock();
      std::this_thread::yield();
    }
    is_given = true;
    given.notify_all();
    mutex.unlock();
  });
  int ran = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank > 0) {
      ++ran;
      return;
    }
    std::unique_lock lock(mutex);
    waits = true;
    const int before = ran;
    given.wait(lock, [&] { return is_given; });
    EXPECT_EQ(ran, before);
  });
  holder.join();
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST(SignalledConditions, AreThoseThatTheThreadSignals) {
  std::condition_variable one, other;
  one.notify_one();
  const SignalledConditions signalled;
  one.notify_one();
  {
    const SignalledConditions inner;
    other.notify_one();
    EXPECT_THAT(inner.all(), ElementsAre(other.native_handle()));
  }
  EXPECT_THAT(signalled.all(), ElementsAre(one.native_handle()));
}

}  // namespace
}  // namespace rehearse::exec::test
