// SPDX-License-Identifier: BSD-3-Clause
// Contract: with coalesced_as_one, coalesced sends and receives are one unit. Units with calls that match each other
// move together, once all calls of all these units are matched. If a unit never moves, the report names the missing
// peer.
#include "core/comm/backend/coalescing_world.h"

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class CoalescedAsOne : public CommTest {
 protected:
  CoalescedAsOne() { options.coalesced_as_one = true; }

  struct Batch {
    std::vector<int> to, from;
  };

  static WorkPtr start(const ProcessGroup& group, const Batch& batch) {
    group->startCoalescing(at::kCPU);
    for (const int peer : batch.to) send(group, at::ones({1}), peer);
    for (const int peer : batch.from) recv(group, at::ones({1}), peer);
    return group->endCoalescing(at::kCPU);
  }

  // In one batch, rank 0 sends to rank 1 and receives from rank 2. Ranks 1 and 2 receive first and then send.
  exec::RunOutcome run_a_chain() {
    return run(3, [](int rank, const ProcessGroup& group) {
      if (rank == 0) {
        start(group, {{1}, {2}})->wait();
      } else {
        recv(group, at::ones({1}), rank - 1)->wait();
        send(group, at::ones({1}), (rank + 1) % 3)->wait();
      }
    });
  }
};

TEST_F(CoalescedAsOne, Ring_Completes) {
  for (const int ranks : {2, 3, 8}) {
    const auto outcome = run(ranks, [ranks](int rank, const ProcessGroup& group) {
      EXPECT_TRUE(start(group, {{(rank + 1) % ranks}, {(rank + ranks - 1) % ranks}})->wait());
      EXPECT_TRUE(start(group, {{rank, (rank + 1) % ranks}, {rank, (rank + ranks - 1) % ranks}})->wait());
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
    EXPECT_TRUE(pending.empty());
  }
}

TEST_F(CoalescedAsOne, NothingMoves_BeforeAllHaveArrived) {
  for (const bool as_one : {true, false}) {
    options.coalesced_as_one = as_one;
    clock = {};
    const auto outcome = run(4, [as_one](int rank, const ProcessGroup& group) {
      if (rank == 0) start(group, {{1}, {2}})->wait();
      if (rank == 1) recv(group, at::ones({1}), 0)->wait();
      if (rank == 2) start(group, {{0}, {3}})->wait();
      if (rank == 3) exec::this_rank::sleep_for(10ms);
      if (rank == 3) send(group, at::ones({1}), 2)->wait();
      EXPECT_EQ(exec::this_rank::now() - kTimeZero, as_one || rank >= 2 ? 10ms : 0ms) << "rank " << rank;
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  }
}

TEST_F(CoalescedAsOne, HangOfABatch_IsARingThroughTheBatch) {
  options.timeout = 0ms;
  const auto outcome = run_a_chain();
  EXPECT_EQ(outcome.ending, exec::Ending::deadlock);
  ASSERT_EQ(outcome.blocked.size(), 3u);
  EXPECT_THAT(outcome.blocked[0].waits_for, ElementsAre(2));
  EXPECT_THAT(outcome.blocked[1].waits_for, ElementsAre(0));
  EXPECT_THAT(outcome.blocked[2].waits_for, ElementsAre(1));
  EXPECT_EQ(
      outcome.blocked[1].waits_on,
      "recv #1 from rank 0 on group \"world\" (matched; it moves with a batch of rank 0, whose recv #2 from rank 2 "
      "on group \"world\" has no peer yet)");
  EXPECT_THAT(outcome.blocked[0].waits_on, HasSubstr("send #1 to rank 1 on group \"world\" (matched; it moves with the "
                                                     "rest of its batch)"));
  options.coalesced_as_one = false;
  EXPECT_EQ(run_a_chain().ending, exec::Ending::all_returned);
}

TEST_F(CoalescedAsOne, Timeout_EndsHeldCalls) {
  options.timeout = 100ms;
  EXPECT_CALL(fabric, launch).Times(0);
  const auto outcome = run(3, [](int rank, const ProcessGroup& group) {
    if (rank == 2) return;
    const auto work = rank == 0 ? start(group, {{1}, {2}}) : recv(group, at::ones({1}), 0);
    EXPECT_THROW(work->wait(), CommError);
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 100ms);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(CoalescedAsOne, WorldThatEnds_ReleasesHeldCalls) {
  EXPECT_CALL(fabric, launch).Times(0);
  std::vector<WorkPtr> works;
  run(3, [&works](int rank, const ProcessGroup& group) {
    if (rank == 0) works.push_back(start(group, {{1}, {2}}));
    if (rank == 1) works.push_back(recv(group, at::ones({1}), 0));
  });
  EXPECT_EQ(pending.size(), 3u);
  for (const auto& work : works) EXPECT_THROW(work->wait(), CommError);
}

// A buffered send is complete at once, whatever the other calls wait for.
TEST_F(CoalescedAsOne, BufferedSends_AreNoPartOfIt) {
  options.buffered_sends = true;
  EXPECT_EQ(run_a_chain().ending, exec::Ending::all_returned);
}

}  // namespace
}  // namespace rehearse::comm
