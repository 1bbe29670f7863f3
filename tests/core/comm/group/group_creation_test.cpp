// SPDX-License-Identifier: BSD-3-Clause
// Contract: making a group is itself an operation, which all ranks of the world must call alike and in the same order.
// Groups keep their calls apart, and waits across groups show as cycles.
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <rehearse_internal/comm/rank_backend.h>
#include <rehearse_internal/comm/wait_for_graph.h>
#include <rehearse_internal/torch_state/torch_state.h>

#include "core/comm/record/wait_chain.h"
#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using testing::ElementsAre;

class GroupCreation : public CommTest {
 protected:
  ProcessGroup new_group(std::vector<int> ranks, std::string_view name = {}) {
    return communicators->new_group(ranks, name);
  }
};

TEST_F(GroupCreation, Members_GetTheirPlaceInTheList) {
  const auto outcome = run(4, [&](int rank, const ProcessGroup&) {
    const auto group = new_group({3, 1}, "odd");
    if (rank % 2 == 0) {
      EXPECT_EQ(group, nullptr);
      return;
    }
    EXPECT_EQ(group->getRank(), rank == 3 ? 0 : 1);
    EXPECT_EQ(group->getSize(), 2);
    EXPECT_EQ(group->getGroupName(), "odd");
    allreduce(group, at::ones({1}))->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_THAT(events->groups().at(1).ranks, ElementsAre(3, 1));
  EXPECT_TRUE(pending_groups.empty());
}

// Row and column groups of a 2 x 2 mesh, used at once. Each group counts its own calls.
TEST_F(GroupCreation, OverlappingGroups_KeepTheirCallsApart) {
  const auto outcome = run(4, [&](int rank, const ProcessGroup& world) {
    std::vector<ProcessGroup> rows, columns;
    for (const int i : {0, 1}) rows.push_back(new_group({2 * i, 2 * i + 1}));
    for (const int i : {0, 1}) columns.push_back(new_group({i, i + 2}));
    const auto row = rows[static_cast<std::size_t>(rank / 2)], column = columns[static_cast<std::size_t>(rank % 2)];
    EXPECT_EQ(row->getGroupName(), rank < 2 ? "group1" : "group2");
    std::vector<WorkPtr> works{allreduce(row, at::ones({1 + rank / 2})), broadcast(column, at::ones({1 + rank % 2})),
                               world->barrier(), allreduce(row, at::ones({3}))};
    EXPECT_EQ(works[1]->getSequencenumber(), 1u);
    EXPECT_EQ(works[3]->getSequencenumber(), 2u);
    for (const auto& work : works) work->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

// Each rank makes only its own group. In PyTorch, both groups would get the same name and hang.
TEST_F(GroupCreation, OtherRanksInTheSameCall_AreAMismatch) {
  const auto outcome = run(4, [&](int rank, const ProcessGroup&) {
    new_group(rank % 2 == 0 ? std::vector<int>{0, 2} : std::vector<int>{1, 3});
  });
  EXPECT_EQ(outcome.ending, exec::Ending::stopped);
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].kind, Mismatch::Kind::new_group);
  EXPECT_EQ(mismatches[0].sequence, 1u);
  EXPECT_EQ(to_string(mismatches[0]), "new_group #1: ranks 0,2 passed {0, 2}, ranks 1,3 passed {1, 3}");
  EXPECT_EQ(mismatches[0].fields, (std::vector<Mismatch::Field>{{"ranks", "{0, 2}", "{1, 3}"}}));
}

// The result does not depend on the order of arrival, or on how far the other ranks have gone on.
TEST_F(GroupCreation, OddOneOut_IsNamedInEveryOrder) {
  for (const std::uint32_t last : {0, 1, 2, 3}) {
    mismatches.clear();
    ON_CALL(oracle, choose).WillByDefault([last](ChoiceKind, std::span<const std::uint32_t> candidates, auto) {
      return candidates.front() == last && candidates.size() > 1 ? 1 : 0;
    });
    const auto outcome = run(4, [&](int rank, const ProcessGroup&) {
      const auto pair = new_group({0, 1}, "pair");
      const auto group = new_group(rank == 2 ? std::vector<int>{1, 2} : std::vector<int>{1, 2, 3});
      if (group != nullptr) allreduce(group, at::ones({1}))->wait();
    });
    EXPECT_EQ(outcome.ending, exec::Ending::stopped);
    ASSERT_EQ(mismatches.size(), 1u) << last;
    EXPECT_TRUE(mismatches[0].has_majority);
    EXPECT_EQ(mismatches[0].sequence, 2u);
    EXPECT_THAT(mismatches[0].first.alike, ElementsAre(0, 1, 3));
    EXPECT_THAT(mismatches[0].second.alike, ElementsAre(2));
    EXPECT_EQ(to_string(mismatches[0]), "rank 2 passed {1, 2} while ranks 0-1,3 passed {1, 2, 3} to new_group #2");
    EXPECT_EQ(outcome.stop_reason, to_string(mismatches[0]));
  }
}

TEST_F(GroupCreation, RankThatNeverComes_IsWaitedForASecond) {
  const auto start = clock.now();
  const auto outcome = run(4, [&](int rank, const ProcessGroup&) {
    if (rank == 0) exec::this_rank::sleep_for(std::chrono::hours(1));
    new_group(rank == 1 ? std::vector<int>{1} : std::vector<int>{1, rank}, "late");
  });
  EXPECT_EQ(clock.now() - start, std::chrono::seconds(1));
  EXPECT_EQ(outcome.stop_reason,
            "new_group #1: rank 1 passed {1} \"late\", rank 2 passed {1, 2} \"late\", rank 3 passed {1, 3} \"late\"");
  ASSERT_EQ(outcome.blocked.size(), 2u);
  EXPECT_EQ(outcome.blocked[1].waits_on, "new_group #1 (the ranks' calls do not match)");
  EXPECT_THAT(outcome.blocked[1].waits_for, ElementsAre(1, 2));
}

TEST_F(GroupCreation, OtherOrder_IsAMismatch) {
  run(2, [&](int rank, const ProcessGroup&) {
    for (const auto* name : rank == 0 ? std::vector{"dp", "tp"} : std::vector{"tp", "dp"}) new_group({0, 1}, name);
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].fields, (std::vector<Mismatch::Field>{{"name", "dp", "tp"}}));
}

// No rank waits in new_group here, but on a cluster ranks 0 and 1 would.
TEST_F(GroupCreation, CallThatOneRankNeverMakes_IsLeftPending) {
  run(3, [&](int rank, const ProcessGroup&) {
    if (rank != 2) new_group({0, 1}, "pair");
  });
  ASSERT_EQ(pending_groups.size(), 1u);
  EXPECT_EQ(pending_groups[0].name, "pair");
  EXPECT_THAT(pending_groups[0].called_by, ElementsAre(0, 1));
  EXPECT_THAT(pending_groups[0].missing, ElementsAre(2));
}

TEST_F(GroupCreation, SenselessLists_AreRefused) {
  run(2, [&](int, const ProcessGroup&) {
    EXPECT_THROW(new_group({}), c10::ValueError);
    EXPECT_THROW(new_group({0, 2}), c10::ValueError);
    EXPECT_THROW(new_group({1, 1}), c10::ValueError);
    EXPECT_THROW(new_group({0, 1}, "world"), c10::ValueError);
    EXPECT_NE(new_group({0, 1}), nullptr);
  });
  EXPECT_TRUE(mismatches.empty());
}

TEST_F(GroupCreation, SwappedOrderOnTwoGroups_IsACycle) {
  const auto outcome = run(2, [&](int rank, const ProcessGroup&) {
    auto first = new_group({0, 1}, "a"), second = new_group({0, 1}, "b");
    if (rank == 1) std::swap(first, second);
    allreduce(first, at::ones({1}))->wait();
    allreduce(second, at::ones({1}))->wait();
  });
  std::vector<BlockedCall> calls;
  for (const auto& fiber : outcome.hang) calls.push_back({fiber.rank, fiber.call, fiber.waits_for});
  const auto analysis = analyse_waits(calls, {});
  ASSERT_EQ(analysis.cycles.size(), 1u);
  EXPECT_EQ(chain_text(analysis.cycles[0]),
            "rank 0 waits for rank 1 (allreduce #1 on group \"a\") -> "
            "rank 1 waits for rank 0 (allreduce #1 on group \"b\")");
}

// c10d allows opposite orders on two groups if no rank waits between the calls, so the report must be silent.
TEST_F(GroupCreation, SwappedOrderOfAsyncCalls_IsFine) {
  const auto outcome = run(2, [&](int rank, const ProcessGroup&) {
    auto first = new_group({0, 1}, "a"), second = new_group({0, 1}, "b");
    if (rank == 1) std::swap(first, second);
    const auto one = allreduce(first, at::ones({1})), two = allreduce(second, at::ones({1}));
    one->wait();
    two->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(GroupCreation, Store_IsPrefixedByTheGroup) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  run(2, [&](int rank, const ProcessGroup&) {
    const auto group = communicators->new_group(std::vector{0, 1}, "dp", store);
    if (rank == 0) group->getStore()->set("key", std::vector<std::uint8_t>{1});
  });
  EXPECT_TRUE(store->check({"dp/key"}));
}

TEST_F(GroupCreation, Groups_AreRegisteredForEachRank) {
  options.register_groups = true;
  torch_state::TorchRankState state;
  const auto outcome = run(3, state, [&](int rank, const ProcessGroup& world) {
    const auto group = new_group({0, 2}, "even");
    exec::this_rank::yield();
    EXPECT_EQ(c10d::resolve_process_group("world"), world);
    if (rank == 1) {
      EXPECT_THROW(c10d::resolve_process_group("even"), c10::Error);
    } else {
      EXPECT_EQ(c10d::resolve_process_group("even"), group);
    }
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

}  // namespace
}  // namespace rehearse::comm
