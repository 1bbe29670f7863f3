// SPDX-License-Identifier: BSD-3-Clause
// The incarnations of ranks.
#include "exec/executor/rank_table.h"

#include <gtest/gtest.h>

#include "core/exec/world_fixture.h"
#include "exec/fiber/fiber_table.h"

namespace rehearse::exec {
namespace {

using test::at;
using namespace std::chrono_literals;

struct NamedCall final : Observer {
  explicit NamedCall(const char* named) : name(named) {}
  Wait describe() const override { return {"", name}; }
  const char* name;
};

class RankTables : public ::testing::Test {
 protected:
  RankTables() { fibers.prepare(0, 4); }

  Fiber& live_fiber(int rank) {
    Fiber& fiber = fibers.add();
    fiber.rank = rank;
    fiber.state = Fiber::State::runnable;
    return fiber;
  }

  FiberTable fibers;
  RankTable ranks{2};
};

TEST_F(RankTables, Rank_IsAliveUntilItsMainFiberHasEnded) {
  EXPECT_FALSE(ranks.is_alive(0));
  EXPECT_FALSE(ranks.any_alive());
  Fiber& main = live_fiber(0);
  ranks.begin(0, main);
  EXPECT_TRUE(ranks.is_alive(0));
  EXPECT_FALSE(ranks.is_alive(1));
  main.state = Fiber::State::ended;
  EXPECT_FALSE(ranks.is_alive(0));
  EXPECT_TRUE(ranks.any_alive());  // until end() is called
  ranks.end(0);
  EXPECT_FALSE(ranks.any_alive());
}

TEST_F(RankTables, NextIncarnation_KeepsTheCountOfFibersOnly) {
  Fiber& main = live_fiber(1);
  ranks.begin(1, main);
  EXPECT_FALSE(ranks.has_had_helpers(1));
  EXPECT_EQ(ranks.next_helper(1), 1u);
  ranks.note_failed(1);
  ranks.note_given_up(1, NamedCall("a call"), at(1ms));
  main.state = Fiber::State::ended;
  ranks.end(1);
  ranks.renew(1);
  EXPECT_EQ(ranks.incarnation(1), 1);
  EXPECT_FALSE(ranks.has_failed(1));
  EXPECT_FALSE(ranks.gave_up(1).has_value());
  EXPECT_TRUE(ranks.has_had_helpers(1));
  EXPECT_EQ(ranks.next_helper(1), 2u);
  ranks.begin(1, live_fiber(1));
  EXPECT_TRUE(ranks.is_alive(1));
  EXPECT_EQ(ranks.incarnation(0), 0);
}

TEST_F(RankTables, FirstTimeoutOfARankAtATime_Stays) {
  ranks.note_given_up(0, NamedCall("first"), at(1ms));
  ranks.note_given_up(0, NamedCall("second"), at(1ms));
  EXPECT_EQ(ranks.gave_up(0)->call, "first");
  ranks.note_given_up(0, NamedCall("third"), at(2ms));
  EXPECT_EQ(ranks.gave_up(0)->call, "third");
}

using RankTableDeathTest = RankTables;

TEST_F(RankTableDeathTest, StartsAndEndsOutOfOrder_AreABrokenInvariant) {
  Fiber& main = live_fiber(0);
  EXPECT_DEATH(ranks.end(0), "not mains_alive_ > 0 && .*rank = 0, mains_alive_ = 0.");
  ranks.begin(0, main);
  EXPECT_DEATH(ranks.begin(0, live_fiber(0)), "not entry.main == nullptr && ");
  EXPECT_DEATH(ranks.end(0), "not mains_alive_ > 0 && .*rank = 0, mains_alive_ = 1.");
  EXPECT_DEATH(ranks.renew(0), "not !is_alive.rank. .rank = 0, ");
  Fiber& helper = live_fiber(1);
  helper.fiber_of_rank = 1;
  EXPECT_DEATH(ranks.begin(1, helper), "main.is_main.. .rank = 1, main.id = 1, ");
  main.rank = 1;  // as if a fiber of rank 1 had taken the place of this fiber
  EXPECT_DEATH(ranks.is_alive(0), "main->rank == rank .rank = 0, main->id = 0, main->rank = 1, ");
}

}  // namespace
}  // namespace rehearse::exec
