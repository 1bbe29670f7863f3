// SPDX-License-Identifier: BSD-3-Clause
// Contract: analyse_waits() finds the rings of ranks that wait for each other, shortest first. It also finds the waits
// for ranks that have ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse_internal/comm/wait_for_graph.h>

#include "core/comm/record/wait_chain.h"

namespace rehearse::comm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> texts(const std::vector<std::vector<WaitEdge>>& cycles) {
  std::vector<std::string> all;
  for (const auto& cycle : cycles) all.push_back(chain_text(cycle));
  return all;
}

TEST(WaitForGraph, NoRankBlocked_IsEmpty) {
  const auto analysis = analyse_waits({}, {0, 1});
  EXPECT_THAT(analysis.cycles, IsEmpty());
  EXPECT_THAT(analysis.on_ended, IsEmpty());
  EXPECT_THAT(analysis.dead_ends, IsEmpty());
}

TEST(WaitForGraph, Ring_IsFoundAcrossGroupsAndMessages) {
  const auto analysis = analyse_waits(
      {{0, "allreduce on a", {1}}, {1, "recv on b", {2}}, {2, "barrier", {0}}, {3, "barrier", {0, 1, 2}}}, {});
  EXPECT_THAT(texts(analysis.cycles),
              ElementsAre("rank 0 waits for rank 1 (allreduce on a) -> rank 1 waits for rank 2 (recv on b) -> "
                          "rank 2 waits for rank 0 (barrier)"));
  EXPECT_THAT(analysis.ring_of_any, IsEmpty());
}

BlockedCall store_wait(int rank, std::string key = "store key") { return {rank, std::move(key), {}, "", true}; }

// A wait that any rank could end is hopeless if all remaining ranks wait for the waiting rank.
TEST(WaitForGraph, WaitForAnyRank_ClosesARingWhereAllOthersWaitForIt) {
  const auto ring = [](const std::vector<BlockedCall>& blocked, const std::vector<int>& ended = {}) {
    return chain_text(analyse_waits(blocked, ended).ring_of_any);
  };
  const BlockedCall waits_for_0{1, "barrier", {0}};
  EXPECT_EQ(ring({store_wait(0), waits_for_0}),
            "rank 0 waits for rank 1 (store key) -> rank 1 waits for rank 0 (barrier)");
  EXPECT_EQ(ring({store_wait(0), waits_for_0}, {2}),
            "rank 0 waits for rank 1 (store key) -> rank 1 waits for rank 0 (barrier)");
  EXPECT_EQ(ring({store_wait(0), waits_for_0, {2, "recv", {1}}}),
            "rank 0 waits in store key; any other rank could end this wait, but rank 1, for example, is blocked, too "
            "-> rank 1 waits for rank 0 (barrier)");
  EXPECT_EQ(ring({store_wait(0), store_wait(1, "another key")}),
            "rank 0 waits for rank 1 (store key) -> rank 1 waits for rank 0 (another key)");
  EXPECT_EQ(ring({store_wait(0), store_wait(1), {2, "recv", {1}}}),
            "rank 1 waits in store key; any other rank could end this wait, but rank 2, for example, is blocked, too "
            "-> rank 2 waits for rank 1 (recv)");
}

TEST(WaitForGraph, WaitForAnyRank_IsNoRingWhereAnotherCauseIsLeft) {
  const auto ring = [](const std::vector<BlockedCall>& blocked, const std::vector<int>& ended = {}) {
    return analyse_waits(blocked, ended).ring_of_any;
  };
  EXPECT_THAT(ring({store_wait(0)}), IsEmpty());
  EXPECT_THAT(ring({store_wait(0)}, {1, 2}), IsEmpty());
  EXPECT_THAT(ring({store_wait(0), store_wait(1)}), IsEmpty());  // a rank that waits for a key would not set it
  EXPECT_THAT(ring({store_wait(0), {1, "barrier", {0}}, {2, "condition", {}}}), IsEmpty());
  EXPECT_THAT(ring({store_wait(0), {1, "barrier", {0, 2}}}, {2}), IsEmpty());
  EXPECT_THAT(ring({store_wait(0), {1, "recv", {2}}, {2, "recv", {1}}}), IsEmpty());
}

TEST(WaitForGraph, SeveralRings_ComeShortestFirst) {
  const auto analysis =
      analyse_waits({{0, "a", {1}}, {1, "b", {2}}, {2, "c", {0}}, {3, "d", {4, 0}}, {4, "e", {3}}}, {});
  EXPECT_THAT(texts(analysis.cycles),
              ElementsAre("rank 3 waits for rank 4 (d) -> rank 4 waits for rank 3 (e)",
                          "rank 0 waits for rank 1 (a) -> rank 1 waits for rank 2 (b) -> rank 2 waits for rank 0 (c)"));
}

TEST(WaitForGraph, WaitsForEndedRanks_AreNoRing) {
  const auto analysis = analyse_waits({{0, "allreduce", {2}}, {1, "allreduce", {2}}}, {2});
  EXPECT_THAT(analysis.cycles, IsEmpty());
  EXPECT_THAT(analysis.dead_ends, IsEmpty());
  ASSERT_EQ(analysis.on_ended.size(), 2u);
  EXPECT_EQ(to_string(analysis.on_ended[1]), "rank 1 waits for rank 2 (allreduce)");
}

// Two fibers of rank 0 wait for different ranks. Each of the waits may close a ring.
TEST(WaitForGraph, ThreadsOfARank_AllCount) {
  const auto analysis = analyse_waits({{0, "main", {1}}, {0, "helper", {2}}, {2, "other", {0}}}, {});
  EXPECT_THAT(texts(analysis.cycles),
              ElementsAre("rank 0 waits for rank 2 (helper) -> rank 2 waits for rank 0 (other)"));
}

// Nobody knows for whom ranks 0, 2 and 4 wait. Two ranks wait for rank 2, one waits for rank 0, and none waits for rank
// 4.
TEST(WaitForGraph, UnknownWaits_AreWhereChainsEnd) {
  const auto analysis = analyse_waits(
      {{0, "store key", {}}, {1, "recv", {2}}, {2, "condition", {}}, {3, "barrier", {0, 1, 2}}, {4, "alone", {}}}, {});
  EXPECT_THAT(analysis.cycles, IsEmpty());
  ASSERT_EQ(analysis.dead_ends.size(), 3u);
  EXPECT_EQ(analysis.dead_ends[0].rank, 2);
  EXPECT_EQ(analysis.dead_ends[0].call, "condition");
  EXPECT_EQ(chain_text(analysis.dead_ends[0].held_up),
            "rank 1 waits for rank 2 (recv) -> rank 3 waits for rank 2 (barrier)");
  EXPECT_EQ(analysis.dead_ends[1].rank, 0);
  EXPECT_EQ(analysis.dead_ends[1].held_up.size(), 1u);
  EXPECT_EQ(analysis.dead_ends[2].rank, 4);
  EXPECT_THAT(analysis.dead_ends[2].held_up, IsEmpty());
}

// A rank that locks a mutex twice waits for no other rank. A rank that joins its own thread waits for what the thread
// waits for.
TEST(WaitForGraph, WaitsWithinARank_AreADeadEndOrTheThreadsWait) {
  const auto locked = analyse_waits({{0, "mutex", {0}}, {1, "barrier", {0}}}, {});
  EXPECT_THAT(locked.cycles, IsEmpty());
  ASSERT_EQ(locked.dead_ends.size(), 1u);
  EXPECT_EQ(locked.dead_ends[0].call, "mutex");
  EXPECT_EQ(chain_text(locked.dead_ends[0].held_up), "rank 1 waits for rank 0 (barrier)");
  const auto joined = analyse_waits({{0, "join", {0}}, {0, "condition", {}}, {1, "recv", {0}}}, {});
  EXPECT_THAT(joined.cycles, IsEmpty());
  ASSERT_EQ(joined.dead_ends.size(), 1u);
  EXPECT_EQ(joined.dead_ends[0].call, "condition");
  const auto through_thread = analyse_waits({{0, "join", {0}}, {0, "recv", {1}}, {1, "recv", {0}}}, {});
  EXPECT_THAT(texts(through_thread.cycles),
              ElementsAre("rank 0 waits for rank 1 (recv) -> rank 1 waits for rank 0 (recv)"));
  EXPECT_THAT(through_thread.dead_ends, IsEmpty());
}

// First, a thousand ranks form one ring. Then each half of a group waits for the other half. In the ring, the search
// from each rank follows every edge once and finds the ring. Without the ring's ranks, no rank remains. In the halves,
// every cycle that a search finds has two ranks. Search k (from 0) begins at the lowest remaining rank. It follows that
// rank's 512 - k edges to the remaining ranks of the other half, and then the first edge of one of those ranks, which
// leads back.
TEST(WaitForGraph, ManyRanks_FollowFewEdges) {
  std::vector<BlockedCall> ring, halves;
  std::vector<int> low, high;
  for (int rank = 0; rank < 1024; ++rank) {
    ring.push_back({rank, "recv", {(rank + 1) % 1024}});
    (rank < 512 ? low : high).push_back(rank);
  }
  for (int rank = 0; rank < 1024; ++rank) halves.push_back({rank, "allreduce", rank < 512 ? high : low});
  const auto of_ring = analyse_waits(ring, {});
  ASSERT_EQ(of_ring.cycles.size(), 1u);
  EXPECT_EQ(of_ring.cycles.front().size(), 1024u);
  EXPECT_EQ(of_ring.edges_followed, 1024u * 1024u);
  const auto of_halves = analyse_waits(halves, {});
  ASSERT_EQ(of_halves.cycles.size(), 512u);
  EXPECT_EQ(of_halves.cycles.back().size(), 2u);
  EXPECT_EQ(of_halves.edges_followed, 512u * 513u / 2 + 512u);
}

}  // namespace
}  // namespace rehearse::comm
