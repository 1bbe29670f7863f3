// SPDX-License-Identifier: BSD-3-Clause
// Contract: a rank that waits for its device lets other ranks run, and goes on when the device is done. Its wait does
// not count as a deadlock.
#include <stdexcept>

#include <rehearse_internal/exec/this_rank.h>

#include "real/interpose/waiting_world.h"

namespace rehearse::real {
namespace {

using exec::Ending;
using exec::FixedObserver;

class DeviceWaitsTest : public ::testing::Test {
 protected:
  WaitingWorld world;
};

TEST_F(DeviceWaitsTest, RankThatWaits_LetsOthersRunAndGoesOnAfterwards) {
  bool done = false;
  std::vector<int> order;
  const auto outcome = world.run(2, [&](int rank) {
    if (rank == 0) {
      world.waits.wait([&] { return done; }, FixedObserver("a kernel"));
      order.push_back(0);
      return;
    }
    for (int k = 0; k < 20; ++k) exec::this_rank::yield();
    order.push_back(1);
    done = true;
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(order, (std::vector<int>{1, 0}));
  EXPECT_FALSE(world.waits.pending());
}

// There is no other rank, so the wait can only end from outside.
TEST_F(DeviceWaitsTest, LoneWait_IsNoDeadlock) {
  int looks = 0;
  const auto outcome =
      world.run(1, [&](int) { world.waits.wait([&] { return ++looks == 1'000; }, FixedObserver("a kernel")); });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(looks, 1'000);
  EXPECT_EQ(world.others.polls, 1'000);
}

TEST_F(DeviceWaitsTest, TwoRanks_GoOnEachWhenItsOwnIsOver) {
  int looks = 0;
  std::vector<int> order;
  const auto outcome = world.run(2, [&](int rank) {
    world.waits.wait([&, rank] { return rank == 1 || ++looks > 5; }, FixedObserver("a kernel"));
    order.push_back(rank);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(order, (std::vector<int>{1, 0}));
}

TEST_F(DeviceWaitsTest, WorldThatEnds_TakesTheWaiterAlong) {
  const auto outcome = world.run(2, [&](int rank) {
    if (rank == 1) throw std::runtime_error("rank 1 has had enough");
    world.waits.wait([] { return false; }, FixedObserver("a kernel that spins"));
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  ASSERT_EQ(outcome.blocked.size(), 1u);
  EXPECT_EQ(outcome.blocked[0].waits_on, "a kernel that spins");
  EXPECT_EQ(outcome.ranks[0], exec::RankEnd::aborted);
  EXPECT_FALSE(world.waits.pending());
}

TEST_F(DeviceWaitsTest, OtherWorkOfDevices_CountsToo) {
  EXPECT_FALSE(world.waits.pending());
  world.others.busy = true;
  EXPECT_TRUE(world.waits.pending());
}

}  // namespace
}  // namespace rehearse::real
