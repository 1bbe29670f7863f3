// SPDX-License-Identifier: BSD-3-Clause
// Contract: our groups support the functions of c10d::ProcessGroup that split and merge groups, and Group::shrink(),
// which c10d::ProcessGroup lacks.
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/comm/errors.h>
#include <rehearse/rehearse.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace rehearse {
namespace {

double sum_over(const Group& group, int value) {
  auto tensor = at::full({1}, static_cast<double>(value), at::kDouble);
  group.allreduce(tensor)->wait();
  return tensor.item<double>();
}

TEST(GroupsFromGroups, SplitGroup_ReducesAmongItsMembers) {
  check({.ranks = 6}, [](RankContext& ctx) {
    const std::vector<int> ranks = ctx.rank() % 2 == 0 ? std::vector<int>{0, 2, 4} : std::vector<int>{1, 3, 5};
    const Group half(ctx.group()->splitGroup(ranks, std::chrono::milliseconds(70), {}, "half", "every other rank"));
    EXPECT_EQ(half.size(), 3);
    EXPECT_EQ(half.rank(), ctx.rank() / 2);
    EXPECT_EQ(half->getGroupName(), "half");
    EXPECT_EQ(half->getGroupDesc(), "every other rank");
    EXPECT_EQ(half->getDefaultBackend()->getBackendOptions()->timeout, std::chrono::milliseconds(70));
    EXPECT_EQ(sum_over(half, ctx.rank()), ctx.rank() % 2 == 0 ? 6 : 9);
    if (half.rank() == 2) return;
    const Group pair(half->splitGroup({0, 1}, {}, {}, {}, {}));
    EXPECT_EQ(sum_over(pair, ctx.rank()), ctx.rank() % 2 == 0 ? 2 : 4);
  });
}

TEST(GroupsFromGroups, MergeRemoteGroup_JoinsRanksOfDifferentGroups) {
  check({.ranks = 4}, [](RankContext& ctx) {
    const auto left = ctx.new_group({0, 1}, "left");
    const auto right = ctx.new_group({2, 3}, "right");
    const auto store = c10::make_intrusive<c10d::PrefixStore>("merging", ctx.store());
    const c10d::ProcessGroup::MergeOptions options(std::chrono::milliseconds(500), "both");
    const Group both((left ? left : right)->mergeRemoteGroup(store, options, 4));
    EXPECT_EQ(both.size(), 4);
    EXPECT_EQ(both->getGroupName(), "both");
    EXPECT_EQ(sum_over(both, 1 << ctx.rank()), 15);
    // The merged group numbers its ranks in the order of their arrival. Each number must be unique.
    EXPECT_EQ(sum_over(both, 1 << both.rank()), 15);
  });
}

// The rank that joins waits for the other rank's key, in virtual time.
TEST(GroupsFromGroups, MergeThatOneRankNeverJoins_TimesOutInTheStore) {
  check({.ranks = 2}, [](RankContext& ctx) {
    if (ctx.rank() == 1) return;
    ctx.store()->setTimeout(std::chrono::milliseconds(30));
    EXPECT_THROW(ctx.group()->mergeRemoteGroup(ctx.store(), c10d::ProcessGroup::MergeOptions(), 2),
                 c10::DistStoreError);
    EXPECT_EQ(ctx.now(), kTimeZero + std::chrono::milliseconds(30));
  });
}

TEST(GroupsFromGroups, Shrink_GoesOnWithoutTheRanksLeftOut) {
  check({.ranks = 5}, [](RankContext& ctx) {
    if (ctx.rank() == 1 || ctx.rank() == 3) return;
    const Group rest = ctx.group().shrink({3, 1});
    EXPECT_EQ(rest.size(), 3);
    EXPECT_EQ(rest.rank(), ctx.rank() / 2);
    EXPECT_EQ(rest->getGroupName(), "world:shrink:[0, 2, 4]");
    EXPECT_EQ(sum_over(rest, ctx.rank()), 6);
    rest->getStore()->add("members", 1);
    rest.barrier()->wait();
    EXPECT_EQ(rest->getStore()->add("members", 0), 3);
  });
}

// Rank 2 ends without the all-reduce that the others have begun. They abort it and go on, as after the loss of a node.
TEST(GroupsFromGroups, ShrinkWithAbort_LeavesAnUnfinishedCollectiveBehind) {
  check({.ranks = 3}, [](RankContext& ctx) {
    if (ctx.rank() == 2) return;
    auto tensor = at::ones({1});
    const auto work = ctx.group().allreduce(tensor);
    const Group rest = ctx.group().shrink({2}, true);
    EXPECT_THROW(work->wait(), CommError);
    EXPECT_EQ(sum_over(rest, 1), 2);
    EXPECT_THROW(ctx.group().barrier(), CommError);
  });
}

}  // namespace
}  // namespace rehearse
