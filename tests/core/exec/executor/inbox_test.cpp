// SPDX-License-Identifier: BSD-3-Clause
// Contract: what threads post for a rank runs in it, in order and once, whether the executor sleeps or ranks run, until
// the world is over.
#include <rehearse_internal/exec/inbox.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/native_scope.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/machine_time_world.h"

namespace rehearse::exec::test {
namespace {

const FixedObserver kThread("a thread");

// A real one, whoever starts it.
template <class Work>
std::thread real_thread(Work work) {
  const NativeScope native;
  return std::thread(std::move(work));
}

void join(std::thread& thread) {
  const NativeScope native;
  thread.join();
}

TEST(Inbox, PostedWork_RunsInItsRankWhileTheExecutorSleeps) {
  MachineTimeWorld w(3);
  std::vector<int> ran_in;
  const auto outcome = w.run([&](RankExecutor& executor, int rank) {
    const Inbox inbox(executor);
    WaitQueue queue;
    bool done = false;
    auto thread = real_thread([&, errand = Inbox::Errand(inbox)] {
      EXPECT_TRUE(inbox.post(rank, [&] {
        ran_in.push_back(this_rank::rank());
        done = true;
        queue.notify_all();
      }));
    });
    while (!done) queue.wait(kThread);
    join(thread);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_THAT(ran_in, testing::UnorderedElementsAre(0, 1, 2));
}

TEST(Inbox, WorkOfManyThreads_RunsOnceAndInTheOrderOfEach) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 500;
  MachineTimeWorld w(1);
  std::vector<std::vector<int>> seen(kThreads);
  const auto outcome = w.run([&](RankExecutor& executor, int) {
    const Inbox inbox(executor);
    WaitQueue queue;
    int left = kThreads * kPosts;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.push_back(real_thread([&, thread, errand = Inbox::Errand(inbox)] {
        for (int k = 0; k < kPosts; ++k) {
          inbox.post(0, [&, thread, k] {
            seen[static_cast<std::size_t>(thread)].push_back(k);
            if (--left == 0) queue.notify_all();
          });
        }
      }));
    }
    while (left > 0) queue.wait(kThread);
    for (auto& thread : threads) join(thread);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  std::vector<int> in_order(kPosts);
  for (int k = 0; k < kPosts; ++k) in_order[static_cast<std::size_t>(k)] = k;
  for (const auto& of_thread : seen) EXPECT_EQ(of_thread, in_order);
}

TEST(Inbox, PostedWork_IsSeenBesideARankThatYields) {
  MachineTimeWorld w(2);
  w.world.options.switches_between_looks = 16;
  bool done = false;
  const auto outcome = w.run([&](RankExecutor& executor, int rank) {
    if (rank == 1) {
      const Inbox inbox(executor);
      auto thread = real_thread([&] { inbox.post(1, [&] { done = true; }); });
      join(thread);
    }
    while (!done) this_rank::yield();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_TRUE(done);
}

// What has been posted is there before its errand is over: the executor must not see neither.
TEST(Inbox, ErrandThatEnds_LeavesNoGapBehindItsWork) {
  MachineTimeWorld w(1);
  int done = 0;
  const auto outcome = w.run([&](RankExecutor& executor, int) {
    const Inbox inbox(executor);
    WaitQueue queue;
    std::atomic<int> asked{0};
    std::unique_ptr<Inbox::Errand> errand;
    auto thread = real_thread([&] {
      for (int k = 1; k <= 1'000; ++k) {
        while (asked.load() < k) std::this_thread::yield();
        auto mine = std::move(errand);
        inbox.post(0, [&] {
          ++done;
          queue.notify_all();
        });
      }
    });
    for (int k = 1; k <= 1'000; ++k) {
      errand = std::make_unique<Inbox::Errand>(inbox);
      asked.store(k);
      while (done < k) queue.wait(kThread);
    }
    join(thread);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(done, 1'000);
}

TEST(Inbox, ErrandThatBringsNothing_IsADeadlockInTheEnd) {
  MachineTimeWorld w(1);
  std::thread thread;
  const auto outcome = w.run([&](RankExecutor& executor, int) {
    thread = real_thread([errand = Inbox::Errand(Inbox(executor))] {});
    WaitQueue queue;
    queue.wait(kThread);
  });
  thread.join();
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(outcome.stop_reason, "nobody is on the way");
}

TEST(Inbox, AfterTheWorld_NothingIsKept) {
  MachineTimeWorld w(2);
  std::optional<Inbox> inbox;
  const auto late = std::make_shared<int>(0);
  const auto outcome = w.run([&](RankExecutor& executor, int rank) {
    if (rank == 1) return;
    inbox.emplace(executor);
    inbox->post(0, [late] { ++*late; });  // the rank ends before anyone looks
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(late.use_count(), 1);
  EXPECT_FALSE(inbox->post(0, [late] { ++*late; }));
  EXPECT_EQ(late.use_count(), 1);
  EXPECT_EQ(*late, 0);
}

TEST(Inbox, FailureOfPostedWork_IsItsRanks) {
  MachineTimeWorld w(2);
  const auto outcome = w.run([&](RankExecutor& executor, int rank) {
    if (rank == 1) {
      auto thread = real_thread(
          [inbox = Inbox(executor)] { inbox.post(1, [] { throw std::runtime_error("the device fell off"); }); });
      join(thread);
    }
    const Inbox::Errand waiting{Inbox(executor)};
    WaitQueue queue;
    queue.wait(kThread);
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(w.world.sink.told, std::vector<std::string>{"rank 1: the device fell off"});
}

TEST(Inbox, RankThatIsNone_IsAnErrorOfTheRun) {
  MachineTimeWorld w(2);
  EXPECT_THROW(w.run([&](RankExecutor& executor, int rank) {
    const Inbox inbox(executor);
    const Inbox::Errand waiting(inbox);
    if (rank == 0) inbox.post(2, [] {});
    WaitQueue queue;
    queue.wait(kThread);
  }),
               std::out_of_range);
}

TEST(Inbox, OfASimulatedWorld_IsRefused) {
  World w(1);
  Decisions decisions(w.oracle, w.log);
  RankExecutor executor(w.options, decisions, w.clock, w.state, w.sink);
  EXPECT_THROW(Inbox{executor}, std::logic_error);
}

}  // namespace
}  // namespace rehearse::exec::test
