// SPDX-License-Identifier: BSD-3-Clause
// How a world runs and ends, for many sizes and schedules.
#include <rehearse_internal/exec/executor.h>

#include <gmock/gmock.h>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/call_site/user_frame.h"
#include "core/exec/world_fixture.h"

// This function is outside our namespaces, as user code is. Without line tables, user_frames() leaves out the functions
// of our namespaces.
namespace a_users_job {

[[gnu::noinline]] void loses_its_shard() { throw std::runtime_error("boom"); }

}  // namespace a_users_job

namespace rehearse::exec::test {
namespace {

class Executor : public Worlds {};
REHEARSE_IN_WORLDS(Executor);

TEST_P(Executor, AllReturn_NothingElseIsReported) {
  auto w = world();
  std::vector<int> ran(static_cast<std::size_t>(ranks()));
  const auto outcome = w.run([&](int rank) {
    EXPECT_EQ(this_rank::rank(), rank);
    EXPECT_EQ(this_rank::fiber_of_rank(), 0u);
    this_rank::yield();
    this_rank::sleep_for(1ms * rank);
    ++ran[static_cast<std::size_t>(rank)];
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(ran, std::vector<int>(static_cast<std::size_t>(ranks()), 1));
  EXPECT_EQ(outcome.ranks, std::vector<RankEnd>(static_cast<std::size_t>(ranks()), RankEnd::returned));
  for (int rank = 0; rank < ranks(); ++rank)
    EXPECT_EQ(outcome.ended_at[static_cast<std::size_t>(rank)], at(1ms * rank));
  EXPECT_EQ(outcome.end_time, at(1ms * (ranks() - 1)));
  EXPECT_TRUE(outcome.failures.empty());
  EXPECT_TRUE(outcome.blocked.empty());
  EXPECT_FALSE(this_rank::is_fiber());
}

TEST_P(Executor, SameSeed_SameHash_OtherSeed_OtherHash) {
  const auto hash = [&](World w) {
    w.run([](int) {
      for (int k = 0; k < 40; ++k) this_rank::yield();
    });
    return std::pair(w.log.hash(), w.log.steps());
  };
  EXPECT_EQ(hash(world()), hash(world()));
  EXPECT_NE(hash(World(ranks(), 1)).first, hash(World(ranks(), 2)).first);
}

TEST_P(Executor, ExceptionInOneRank_GivesRankTextPlaceAndTime_OthersEndInOrder) {
  auto w = world();
  const int bad = ranks() - 1;
  std::vector<int> unwound;
  WaitQueue never;
  const auto outcome = w.run([&](int rank) {
    if (rank == bad) {
      this_rank::sleep_for(5ms);
      a_users_job::loses_its_shard();
    }
    try {
      never.wait(FixedObserver("something"));
    } catch (const RankAborted& aborted) {
      EXPECT_STREQ(aborted.what(), "boom");
      unwound.push_back(rank);
      throw;
    }
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(outcome.failures[0].rank, bad);
  EXPECT_EQ(outcome.failures[0].what, "boom");
  EXPECT_THAT(user_frame(outcome.failures[0].thrown_at).function, testing::StartsWith("a_users_job::loses_its_shard"));
  EXPECT_EQ(outcome.failures[0].at, at(5ms));
  EXPECT_THROW(std::rethrow_exception(outcome.failures[0].error), std::runtime_error);
  EXPECT_EQ(w.sink.told, std::vector<std::string>{"rank " + std::to_string(bad) + ": boom"});
  EXPECT_EQ(lines(outcome.blocked), same_line(0, bad - 1, "something"));
  std::vector<int> in_order;
  std::vector<RankEnd> ends(static_cast<std::size_t>(bad), RankEnd::aborted);
  ends.push_back(RankEnd::failed);
  for (int rank = 0; rank < bad; ++rank) in_order.push_back(rank);
  EXPECT_EQ(unwound, in_order);
  EXPECT_EQ(outcome.ranks, ends);
}

TEST_P(Executor, FailureWithKeepRunning_OthersGoOn) {
  auto w = world();
  w.sink.verdict = FailureSink::Verdict::keep_running;
  const auto outcome = w.run([](int rank) {
    if (rank == 1) throw 42;
    this_rank::sleep_for(10ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(10ms));
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(outcome.failures[0].what, "an exception of type int: 42");
  EXPECT_EQ(outcome.ranks[0], RankEnd::returned);
  EXPECT_EQ(outcome.ranks[1], RankEnd::failed);
}

TEST_P(Executor, Deadlock_NamesEveryBlockedRankAndItsCall) {
  auto w = world();
  WaitQueue never;
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) never.wait(FixedObserver("the word of rank 0"));
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(outcome.end_time, kTimeZero);
  EXPECT_EQ(lines(outcome.blocked), same_line(1, ranks() - 1, "the word of rank 0"));
  EXPECT_EQ(outcome.ranks[0], RankEnd::returned);
  EXPECT_EQ(outcome.ranks[1], RankEnd::aborted);
}

TEST_P(Executor, PollsOfWhatNeverChanges_AreALivelock) {
  auto w = world();
  w.options.idle_polls_max = 10;
  std::vector<int> polls(static_cast<std::size_t>(ranks()));
  const auto outcome = w.run([&](int rank) {
    for (;;) {
      this_rank::poll();
      ++polls[static_cast<std::size_t>(rank)];
    }
  });
  EXPECT_EQ(outcome.ending, Ending::livelock);
  EXPECT_EQ(outcome.stop_reason, "stopped after 10 polls, because no rank is left to change their answer");
  EXPECT_EQ(lines(outcome.blocked), same_line(0, ranks() - 1, "a poll of something that does not change"));
  EXPECT_EQ(polls, std::vector<int>(static_cast<std::size_t>(ranks()), 12));
}

TEST_P(Executor, PollThatIsAnswered_SeesTheAnswer) {
  auto w = world();
  w.options.idle_polls_max = 10;
  bool ready = false;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      this_rank::sleep_for(3s);
      ready = true;
      return;
    }
    while (!ready) this_rank::poll();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(3s));
}

// Rank 0 polls in vain while the other ranks wait with a timeout. The timeout ends their waits long after all ranks
// have stopped making progress.
TEST_P(Executor, PollBesideAWaitWithATimeout_IsAHangOfBoth) {
  auto w = world();
  w.options.idle_polls_max = 10;
  WaitQueue never;
  int polls = 0;
  const auto outcome = w.run([&](int rank) {
    this_rank::sleep_for(1s);
    if (rank == 0) {
      for (;; ++polls) this_rank::poll();
    }
    if (never.wait(FixedObserver("the word of rank 0"), at(1h)) == WaitResult::timed_out)
      throw std::runtime_error("too late");
  });
  // With idle_polls_max = 10, 12 polls make a livelock. Rank 0 polls once more if it runs before the rank that fails.
  EXPECT_GE(polls, 12);
  EXPECT_LE(polls, 13);
  ASSERT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(outcome.end_time, at(1h));
  EXPECT_EQ(outcome.hang_began, at(1s));
  ASSERT_EQ(outcome.hang.size(), static_cast<std::size_t>(ranks()));
  EXPECT_TRUE(outcome.hang[0].polls);
  EXPECT_FALSE(outcome.hang[1].polls);
  EXPECT_EQ(outcome.hang[1].waits_on, "the word of rank 0");
}

// All ranks wait; the timeout of one ends its wait, and it goes on to wait for something else, without a timeout.
TEST_P(Executor, DeadlockAfterATimeoutThatTheRankCaught_IsOfTheWaitsAtItsEnd) {
  auto w = world();
  WaitQueue never;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0 && never.wait(FixedObserver("the first key"), at(1s)) == WaitResult::timed_out)
      never.wait(FixedObserver("the second key"));
    never.wait(FixedObserver("the word of rank 0"));
  });
  ASSERT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_TRUE(outcome.hang.empty());
  auto waits = same_line(0, ranks() - 1, "the word of rank 0");
  waits.front() = "rank 0: the second key";
  EXPECT_EQ(lines(outcome.blocked), waits);
}

// A rank that polls a limited number of times gives up before another rank's timeout fires.
TEST_P(Executor, PollThatGivesUp_ComesBeforeTheTimeoutOfOthers) {
  auto w = world();
  WaitQueue answer;
  bool answered = false;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      for (int poll = 0; poll < 900; ++poll) this_rank::poll();
      answered = true;
      answer.notify_all();
    }
    while (!answered) EXPECT_EQ(answer.wait(FixedObserver("rank 0"), at(1h)), WaitResult::notified);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_LT(outcome.end_time, at(2ms));
  EXPECT_TRUE(outcome.hang.empty());
}

struct OutOfShards {};

TEST_P(Executor, ExceptionsThatAreNoStdException_TellTheirTextOrType) {
  const auto what = [&](auto thrown) {
    auto w = world();
    return w
        .run([&](int rank) {
          if (rank == 0) throw thrown;
        })
        .failures.at(0)
        .what;
  };
  EXPECT_EQ(what("no more shards"), "no more shards");
  EXPECT_EQ(what(std::string("no shards")), "no shards");
  EXPECT_EQ(what(-7), "an exception of type int: -7");
  EXPECT_EQ(what(2.5), "an exception of type double");
  EXPECT_EQ(what(OutOfShards()), "an exception of type rehearse::exec::test::(anonymous namespace)::OutOfShards");
}

TEST_P(Executor, StepBudget_EndsTheWorld) {
  auto w = world();
  w.options.steps_max = 500;
  const auto outcome = w.run([](int) {
    for (;;) this_rank::yield();
  });
  EXPECT_EQ(outcome.ending, Ending::step_budget);
  EXPECT_EQ(outcome.stop_reason, "more than 500 switches");
  EXPECT_EQ(outcome.switches, 501u);
  EXPECT_EQ(w.log.steps(), 500u);
}

TEST_P(Executor, Stop_EndsTheWorldWithItsFirstReason) {
  auto w = world();
  const auto outcome = w.run([&](int rank) {
    if (rank == 1) {
      this_rank::sleep_for(1ms);
      RankExecutor::current()->stop("the sums differ");
      RankExecutor::current()->stop("late");
    }
    this_rank::sleep_for(1h);
  });
  EXPECT_EQ(outcome.ending, Ending::stopped);
  EXPECT_EQ(outcome.stop_reason, "the sums differ");
  EXPECT_EQ(outcome.end_time, at(1ms));
  EXPECT_EQ(lines(outcome.blocked), same_line(0, ranks() - 1, "a sleep"));
}

// Ranks that sleep but work in between are not idle, because the limit counts rounds without progress.
TEST_P(Executor, SleepsWithProgressBetween_AreNoLivelock) {
  auto w = world();
  w.options.idle_timed_polls_max = 20;
  const auto outcome = w.run([](int) {
    for (int k = 0; k < 100; ++k) {
      this_rank::sleep_for(1ms);
      RankExecutor::current()->note_progress();
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(100ms));
}

TEST_P(Executor, SleepsAndNothingElse_AreALivelock) {
  auto w = world();
  w.options.idle_timed_polls_max = 20;
  const auto outcome = w.run([](int) {
    for (;;) this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::livelock);
  EXPECT_EQ(outcome.end_time, at(21ms));
}

}  // namespace
}  // namespace rehearse::exec::test
