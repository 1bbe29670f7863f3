// SPDX-License-Identifier: BSD-3-Clause
// Fibers of a rank beside its main fiber: posted completions and spawned work.
#include <algorithm>
#include <set>
#include <utility>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class HelperFibers : public Worlds {};
REHEARSE_IN_WORLDS(HelperFibers);

TEST_P(HelperFibers, Posted_RunsInTheContextOfItsRank) {
  auto w = world();
  WaitQueue changed;
  std::vector<int> ran_as(static_cast<std::size_t>(ranks()), -1);
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      for (int to = 0; to < ranks(); ++to) {
        RankExecutor::current()->post(to, [&, to] {
          EXPECT_NE(this_rank::fiber_of_rank(), 0u);
          ran_as[static_cast<std::size_t>(to)] = this_rank::rank();
          changed.notify_all();
        });
      }
    }
    while (ran_as[static_cast<std::size_t>(rank)] < 0) changed.wait(FixedObserver("its completion"));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  for (int rank = 0; rank < ranks(); ++rank) EXPECT_EQ(ran_as[static_cast<std::size_t>(rank)], rank);
}

TEST_P(HelperFibers, PostedToOneRank_RunsInOrderAndOneAtATime) {
  auto w = world();
  std::vector<int> order;
  bool inside = false;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      for (int k = 0; k < 10; ++k) {
        RankExecutor::current()->post(1, [&, k] {
          EXPECT_FALSE(std::exchange(inside, true));
          for (int pause = 0; pause < k % 4; ++pause) this_rank::yield();
          inside = false;
          order.push_back(k);
        });
      }
    }
    if (rank == 1) this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_P(HelperFibers, PostedToARankThatHasEnded_IsDropped) {
  auto w = world();
  int ran = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank == 1) return;
    this_rank::sleep_for(1ms);
    RankExecutor::current()->post(1, [&] { ++ran; });
    this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(ran, 0);
}

TEST_P(HelperFibers, Spawned_AreNumberedWithinTheirRank) {
  auto w = world();
  std::vector<std::set<std::uint32_t>> ran(static_cast<std::size_t>(ranks()));
  const auto outcome = w.run([&](int rank) {
    for (std::uint32_t k = 1; k <= 3; ++k) {
      const auto number = RankExecutor::current()->spawn([&ran, rank, k] {
        EXPECT_EQ(this_rank::rank(), rank);
        EXPECT_EQ(this_rank::fiber_of_rank(), k);
        EXPECT_TRUE(ran[static_cast<std::size_t>(rank)].insert(k).second);
      });
      EXPECT_EQ(number, k);
    }
    this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(ran, std::vector<std::set<std::uint32_t>>(static_cast<std::size_t>(ranks()), {1, 2, 3}));
}

class HighestId final : public Oracle {
 public:
  std::uint32_t highest = 0;
  std::uint32_t choose(ChoiceKind, std::span<const std::uint32_t> candidates, std::span<const std::uint32_t>) override {
    highest = std::max(highest, *std::max_element(candidates.begin(), candidates.end()));
    return 0;
  }
};

// The executor must reuse the places of ended helpers. Otherwise its table would grow if a program starts many short
// threads. A main fiber's place is never reused, because it holds the state of its rank.
TEST(HelperFiberIds, OfEndedHelpers_AreUsedAgain) {
  World w(3);
  HighestId oracle;
  Decisions decisions(oracle, w.log);
  RankExecutor executor(w.options, decisions, w.clock, w.state, w.sink);
  const auto outcome = executor.run([&](int rank) {
    if (rank == 0) return;
    for (int k = 0; k < 20; ++k) {
      if (rank == 1) executor.spawn([] {});
      executor.post(0, [] { ADD_FAILURE() << "rank 0 has ended"; });
      this_rank::sleep_for(1ms);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(oracle.highest, 3u);  // three main fibers, and one helper at a time
}

// The helpers end like the threads of a process that returns from main.
TEST_P(HelperFibers, MainReturns_ItsHelpersEndAndOthersGoOn) {
  auto w = world();
  WaitQueue never;
  int unwound = 0;
  const auto outcome = w.run([&](int rank) {
    RankExecutor::current()->spawn([&] {
      struct Unwound {
        int& count;
        ~Unwound() { ++count; }
      } unwound_here{unwound};
      never.wait(FixedObserver("something"));
    });
    this_rank::sleep_for(1ms);
    if (rank == 0) {
      this_rank::sleep_for(5ms);
      EXPECT_EQ(unwound, ranks() - 1);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(unwound, ranks());
  EXPECT_EQ(outcome.end_time, at(6ms));
  EXPECT_TRUE(outcome.blocked.empty());
}

// The list of polling fibers must forget a helper that has ended, because a later helper gets the same number.
TEST_P(HelperFibers, HelperThatPolls_EndsWithItsRank) {
  auto w = world();
  bool done = false;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      RankExecutor::current()->spawn([&] {
        while (!done) this_rank::poll();
      });
      this_rank::sleep_for(1ms);
      return;
    }
    this_rank::sleep_for(2ms);
    for (int k = 0; k < 4; ++k) RankExecutor::current()->spawn([] { this_rank::sleep_for(3ms); });
    for (int k = 0; k < 10; ++k) this_rank::poll();
    this_rank::sleep_for(4ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.ended_at[0], at(1ms));
}

TEST_P(HelperFibers, ExceptionInAHelper_FailsTheWholeRank) {
  auto w = world();
  w.sink.verdict = FailureSink::Verdict::keep_running;
  WaitQueue never;
  const auto outcome = w.run([&](int rank) {
    if (rank == 1) {
      RankExecutor::current()->spawn([] { throw std::runtime_error("in a helper"); });
      never.wait(FixedObserver("nothing"));
    }
    this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(w.sink.told, std::vector<std::string>{"rank 1: in a helper"});
  EXPECT_EQ(outcome.ranks[0], RankEnd::returned);
  EXPECT_EQ(outcome.ranks[1], RankEnd::failed);
}

}  // namespace
}  // namespace rehearse::exec::test
