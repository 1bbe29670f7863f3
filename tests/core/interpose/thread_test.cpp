// SPDX-License-Identifier: BSD-3-Clause
// Threads that a rank starts are fibers of that rank.
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class Threads : public Worlds {};
REHEARSE_IN_WORLDS(Threads);

TEST(ThreadStart, EitherThreadMayBeTheFirst) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World w(1, seed);
    std::string order;
    w.run([&](int) {
      std::thread other([&] { order += 'b'; });
      order += 'a';
      other.join();
    });
    orders.insert(order);
  }
  EXPECT_EQ(orders, (std::set<std::string>{"ab", "ba"}));
}

TEST_P(Threads, StdThread_IsAFiberOfItsRank) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    std::vector<std::thread> threads;
    std::set<std::thread::id> ids{std::this_thread::get_id()};
    std::set<std::thread::id> own_ids{std::this_thread::get_id()};
    int done = 0;
    for (int k = 0; k < 3; ++k) {
      threads.emplace_back([&, k] {
        EXPECT_EQ(this_rank::rank(), rank);
        EXPECT_EQ(this_rank::fiber_of_rank(), static_cast<std::uint32_t>(k + 1));
        own_ids.insert(std::this_thread::get_id());
        std::this_thread::sleep_for(1s * (k + 1));
        ++done;
      });
      ids.insert(threads.back().get_id());
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(done, 3);
    EXPECT_EQ(ids.size(), 4u);
    EXPECT_EQ(own_ids, ids);
    EXPECT_EQ(this_rank::now(), at(3s));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Threads, JThread_StopsAndJoins) {
  auto w = world();
  const auto outcome = w.run([](int) {
    std::jthread worker([](std::stop_token stop) {
      while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
    });
    std::this_thread::sleep_for(10ms + 500us);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(11ms));
}

TEST_P(Threads, Async_ReturnsAndThrowsThroughItsFuture) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    auto value = std::async(std::launch::async, [rank] {
      std::this_thread::sleep_for(1s);
      return rank;
    });
    auto error = std::async(std::launch::async, []() -> int { throw std::runtime_error("late"); });
    EXPECT_EQ(value.wait_for(10ms), std::future_status::timeout);
    EXPECT_EQ(this_rank::now(), at(10ms));
    EXPECT_EQ(value.get(), rank);
    EXPECT_EQ(this_rank::now(), at(1s));
    EXPECT_THROW(error.get(), std::runtime_error);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Threads, PromiseNeverKept_IsADeadlock) {
  auto w = world();
  std::promise<int> promise;
  const auto future = promise.get_future().share();
  const auto outcome = w.run([&](int) { future.get(); });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked), same_line(0, ranks() - 1, "a future, latch or atomic variable (futex)"));
}

void* answer(void* argument) {
  this_rank::sleep_for(1ms);
  return static_cast<char*>(argument) + 1;
}

void* leave(void* argument) { pthread_exit(argument); }

TEST_P(Threads, Join_GivesTheReturnValue) {
  auto w = world();
  const auto outcome = w.run([](int) {
    char place[2];
    pthread_t thread{};
    void* result = nullptr;
    ASSERT_EQ(pthread_create(&thread, nullptr, answer, &place[0]), 0);
    EXPECT_EQ(pthread_tryjoin_np(thread, &result), EBUSY);
    EXPECT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, &place[1]);
    EXPECT_EQ(pthread_join(thread, nullptr), ESRCH);
    ASSERT_EQ(pthread_create(&thread, nullptr, leave, &place[0]), 0);
    EXPECT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, &place[0]);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Threads, TimedJoin_GivesUpInVirtualTime) {
  auto w = world();
  const auto outcome = w.run([](int) {
    std::thread slow([] { std::this_thread::sleep_for(10s); });
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    ++until.tv_sec;
    EXPECT_EQ(pthread_timedjoin_np(slow.native_handle(), nullptr, &until), ETIMEDOUT);
    EXPECT_EQ(this_rank::now(), at(1s));
    slow.join();
    EXPECT_EQ(this_rank::now(), at(10s));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Threads, Detached_EndsWithItsRank) {
  auto w = world();
  int ended = 0;
  const auto outcome = w.run([&](int) {
    std::thread([&] {
      std::this_thread::sleep_for(1ms);
      ++ended;
    }).detach();
    std::thread([&] {
      std::this_thread::sleep_for(1h);
      ++ended;
    }).detach();
    std::this_thread::sleep_for(1s);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(ended, ranks());
  EXPECT_EQ(outcome.end_time, at(1s));
}

struct StartsAThreadInTheEnd {
  std::shared_ptr<int> captured;
  ~StartsAThreadInTheEnd() {
    std::thread([captured = captured] { ++*captured; }).detach();
  }
};

// A world that has ended starts no thread, but still frees what the thread would have run.
TEST_P(Threads, NeverBegun_FreesWhatItCaptured) {
  auto w = world();
  const auto captured = std::make_shared<int>(0);
  WaitQueue never;
  const auto outcome = w.run([&](int) {
    const StartsAThreadInTheEnd last{captured};
    never.wait(FixedObserver("nothing"));
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(*captured, 0);
  EXPECT_EQ(captured.use_count(), 1);
}

TEST_P(Threads, Join_ComesAfterTheCapturedIsFreed) {
  auto w = world();
  const auto outcome = w.run([](int) {
    const auto captured = std::make_shared<int>(0);
    std::thread([captured] {
      std::this_thread::sleep_for(1ms);
      ++*captured;
    }).join();
    EXPECT_EQ(*captured, 1);
    EXPECT_EQ(captured.use_count(), 1);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

// At the end of the world, a destructor joins a thread, and waits until the thread has been unwound. If the join never
// returned, the rank would not unwind, and its objects would stay alive.
TEST_P(Threads, JoinWhileUnwinding_WaitsForTheThreadsEnd) {
  auto w = world();
  const auto held = std::make_shared<int>(0);
  int threads_ended = 0;
  WaitQueue never;
  const auto outcome = w.run([&](int) {
    const auto mine = held;
    const std::jthread joined_in_the_end([&] {
      const std::shared_ptr<void> at_end(nullptr, [&](void*) { ++threads_ended; });
      never.wait(FixedObserver("nothing"));
    });
    never.wait(FixedObserver("nothing either"));
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(threads_ended, ranks());
  EXPECT_EQ(held.use_count(), 1);
}

TEST_P(Threads, UncaughtException_FailsTheRank) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    std::thread thread([rank] {
      if (rank == 1) throw std::runtime_error("in a thread");
    });
    thread.join();
    std::this_thread::sleep_for(1s);
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(w.sink.told, std::vector<std::string>{"rank 1: in a thread"});
  EXPECT_EQ(outcome.ranks[1], RankEnd::failed);
}

// A joinable std::thread on the unwound stack calls std::terminate(). The deadlock must still be reported.
TEST_P(Threads, Deadlock_WithAJoinableThreadOnTheStack_IsReported) {
  auto w = world();
  WaitQueue never;
  const auto outcome = w.run([&](int) {
    std::thread thread([&] { never.wait(FixedObserver("nothing")); });
    never.wait(FixedObserver("something"));
    thread.join();
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  ASSERT_EQ(outcome.blocked.size(), static_cast<std::size_t>(2 * ranks()));
  EXPECT_EQ(lines(outcome.blocked)[0], "rank 0: something");
  EXPECT_EQ(lines(outcome.blocked)[1], "rank 0.1: nothing");
  EXPECT_TRUE(outcome.failures.empty());
}

TEST_P(Threads, JoinOfABlockedThread_IsADeadlockThatSaysSo) {
  auto w = world();
  WaitQueue never;
  const auto outcome = w.run([&](int rank) {
    if (rank != 1) return;
    std::thread thread([&] { never.wait(FixedObserver("nothing")); });
    thread.join();
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked), (std::vector<std::string>{"rank 1: the end of its thread 1", "rank 1.1: nothing"}));
}

TEST_P(Threads, HandleFunctions_TakeOurHandles) {
  auto w = world();
  const auto outcome = w.run([](int) {
    std::thread thread([] {
      char name[16] = "?";
      EXPECT_EQ(pthread_setname_np(pthread_self(), "worker"), 0);
      EXPECT_EQ(pthread_getname_np(pthread_self(), name, sizeof name), 0);
      EXPECT_STREQ(name, "worker");
      cpu_set_t set;
      EXPECT_EQ(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
      EXPECT_EQ(pthread_setaffinity_np(pthread_self(), sizeof set, &set), 0);
      int policy = 0;
      sched_param parameters{};
      EXPECT_EQ(pthread_getschedparam(pthread_self(), &policy, &parameters), 0);
      EXPECT_EQ(pthread_setschedparam(pthread_self(), policy, &parameters), 0);
      pthread_attr_t attributes;
      EXPECT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
      void* lowest = nullptr;
      std::size_t bytes = 0;
      EXPECT_EQ(pthread_attr_getstack(&attributes, &lowest, &bytes), 0);
      // AddressSanitizer may keep local variables elsewhere, so the test takes the frame's address.
      void* const frame = __builtin_frame_address(0);
      EXPECT_GT(frame, lowest);
      EXPECT_LT(frame, static_cast<char*>(lowest) + bytes);
      pthread_attr_destroy(&attributes);
    });
    EXPECT_EQ(pthread_kill(thread.native_handle(), 0), 0);
    thread.join();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

}  // namespace
}  // namespace rehearse::exec::test
