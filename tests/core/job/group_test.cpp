// SPDX-License-Identifier: BSD-3-Clause
// Contract: each call of a Group changes the ranks' tensors as its name and arguments say.
#include <rehearse/job/group.h>

#include <stdexcept>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse_internal/exec/this_rank.h>

#include "bit_equal.h"
#include "core/comm/whole_world.h"

namespace rehearse {
namespace {

using rehearse::test::BitEqual;

constexpr int kRanks = 4;

// The factor 1 + rank lets an element of a result show which ranks it comes from.
at::Tensor of(int rank, at::ArrayRef<double> factors) { return at::tensor(factors) * (1 + rank); }

void on_ranks(const World::Body& body) { comm::on_ranks(kRanks, body); }

void expect(const at::Tensor& found, at::ArrayRef<double> wanted) {
  EXPECT_THAT(found, BitEqual(at::tensor(wanted))) << "rank " << exec::this_rank::rank();
}

TEST(GroupCalls, AllReduce_IsTheSumOrWhatIsAskedFor) {
  on_ranks([](RankContext& ctx) {
    auto sum = of(ctx.rank(), {1, -1}), most = sum.clone();
    ctx.group().allreduce(sum)->wait();
    ctx.group().allreduce(most, c10d::ReduceOp::MAX)->wait();
    expect(sum, {10, -10});
    expect(most, {4, -1});
  });
}

TEST(GroupCalls, RootedCalls_TakeTheirRoot) {
  on_ranks([](RankContext& ctx) {
    const auto own = of(ctx.rank(), {1, -1});
    auto sent = own.clone(), sent_by_default = own.clone();
    ctx.group().broadcast(sent, 3)->wait();
    ctx.group().broadcast(sent_by_default)->wait();
    expect(sent, {4, -4});
    expect(sent_by_default, {1, -1});
    auto sum = own.clone(), least = own.clone();
    ctx.group().reduce(sum)->wait();
    ctx.group().reduce(least, 2, c10d::ReduceOp::MIN)->wait();
    if (ctx.rank() == 0) expect(sum, {10, -10});
    if (ctx.rank() == 2) expect(least, {1, -4});
  });
}

TEST(GroupCalls, Gathering_KeepsTheOrderOfRanks) {
  on_ranks([](RankContext& ctx) {
    std::vector<at::Tensor> all(kRanks), pieces;
    for (auto& each : all) each = at::zeros({1}, at::kDouble);
    ctx.group().allgather(all, of(ctx.rank(), {2}))->wait();
    for (int rank = 0; rank < kRanks; ++rank) expect(all[static_cast<std::size_t>(rank)], {2.0 * (1 + rank)});
    for (const double factor : {1.0, 10.0, 100.0, 1000.0}) pieces.push_back(of(ctx.rank(), {factor}));
    auto sum = at::zeros({1}, at::kDouble), most = at::zeros({1}, at::kDouble);
    ctx.group().reduce_scatter(sum, pieces)->wait();
    ctx.group().reduce_scatter(most, pieces, c10d::ReduceOp::MAX)->wait();
    const double own[] = {1, 10, 100, 1000};
    expect(sum, {10 * own[ctx.rank()]});
    expect(most, {4 * own[ctx.rank()]});
  });
}

// In the second call, rank 0 sends two elements to itself, one each to ranks 1 and 2, and none to rank 3. The other
// ranks send one to each rank.
TEST(GroupCalls, AllToAll_TakesReceivedSplitsBeforeSentOnes) {
  on_ranks([](RankContext& ctx) {
    const auto input = of(ctx.rank(), {1, 10, 100, 1000});
    auto even = at::zeros({kRanks}, at::kDouble);
    ctx.group().alltoall(even, input)->wait();
    const double own[] = {1, 10, 100, 1000};
    const double factor = own[ctx.rank()];
    expect(even, {factor, 2 * factor, 3 * factor, 4 * factor});
    const bool first = ctx.rank() == 0, last = ctx.rank() == kRanks - 1;
    auto output = at::zeros({first ? 5 : last ? 3 : 4}, at::kDouble);
    const std::vector<std::int64_t> received{first ? 2 : last ? 0 : 1, 1, 1, 1};
    const auto sent = first ? std::vector<std::int64_t>{2, 1, 1, 0} : std::vector<std::int64_t>{1, 1, 1, 1};
    ctx.group().alltoall(output, input, received, sent)->wait();
    if (first) expect(output, {1, 10, 2, 3, 4});
    if (ctx.rank() == 1) expect(output, {100, 20, 30, 40});
    if (last) expect(output, {2000, 3000, 4000});
  });
}

TEST(GroupCalls, SendAndReceive_MatchByRankAndTag) {
  on_ranks([](RankContext& ctx) {
    if (ctx.rank() == 1) {
      const auto early = ctx.group().send(of(1, {7}), 3, 9);
      ctx.group().send(of(1, {5}), 3)->wait();
      early->wait();
    } else if (ctx.rank() == 3) {
      auto untagged = at::zeros({1}, at::kDouble), tagged = untagged.clone();
      ctx.group().recv(untagged, 1)->wait();
      ctx.group().recv(tagged, 1, 9)->wait();
      expect(untagged, {10});
      expect(tagged, {14});
    }
  });
}

TEST(GroupCalls, Barrier_WaitsForAllRanks) {
  int came = 0;
  comm::on_ranks(kRanks, [&came](RankContext& ctx) {
    ++came;
    ctx.group().barrier()->wait();
    EXPECT_EQ(came % kRanks, 0) << came;
  });
  EXPECT_EQ(came, 3 * kRanks);  // once per schedule
}

TEST(GroupCalls, RankAndSize_AreTheGroupsOwn) {
  on_ranks([](RankContext& ctx) {
    const auto odd = ctx.new_group({3, 1}, "odd");
    EXPECT_EQ(static_cast<bool>(odd), ctx.rank() % 2 == 1);
    if (!odd) return;
    EXPECT_EQ(odd.rank(), ctx.rank() == 3 ? 0 : 1);  // rank 3 stands first in the list {3, 1}
    EXPECT_EQ(odd.size(), 2);
  });
}

TEST(GroupCalls, RanksAndName_AreThoseItWasMadeWith) {
  on_ranks([](RankContext& ctx) {
    EXPECT_EQ(ctx.group().ranks(), (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(ctx.group().name(), "world");
    const auto odd = ctx.new_group({3, 1}, "odd");
    const auto unnamed = ctx.new_group({0, 1, 2, 3});
    EXPECT_EQ(unnamed.name(), "group2");
    if (!odd) return;
    EXPECT_EQ(odd.ranks(), (std::vector<int>{3, 1}));
    EXPECT_EQ(odd.name(), "odd");
  });
}

TEST(Group, TheWorlds_IsFoundWithoutAContext) {
  on_ranks([](RankContext& ctx) {
    EXPECT_EQ(world_group().get(), ctx.group().get());
    auto sum = of(ctx.rank(), {1});
    world_group().allreduce(sum)->wait();
    expect(sum, {10});
  });
  try {
    world_group();
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(
        error.what(),
        "world_group() is called outside of a rank's body, where there is no world; call it there, or pass the "
        "group that you have");
  }
}

TEST(Group, Empty_EveryCallSaysThatTheRankIsNoMember) {
  const Group empty;
  EXPECT_FALSE(static_cast<bool>(empty));
  EXPECT_THROW(empty.rank(), std::logic_error);
  EXPECT_THROW(empty.barrier(), std::logic_error);
  try {
    empty.allreduce(at::ones({1}));
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "this group is empty: the calling rank is not a member of it");
  }
}

// Without a backward, a gradient is an undefined tensor.
TEST(Group, UndefinedTensor_IsRefusedWithTheNameOfTheCall) {
  const Group group;
  const at::Tensor undefined, one = at::ones({1});
  const auto refused = [](const char* call, const auto& make) {
    try {
      make();
      FAIL() << call;
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(),
                "Group::" + std::string(call) +
                    "() was given an undefined tensor; a gradient is undefined if no backward has reached it");
    }
  };
  refused("allreduce", [&] { group.allreduce(undefined); });
  refused("broadcast", [&] { group.broadcast(undefined, 0); });
  refused("allgather", [&] { group.allgather({one, undefined}, one); });
  refused("reduce_scatter", [&] { group.reduce_scatter(undefined, {one}); });
  refused("alltoall", [&] { group.alltoall(one, undefined); });
  refused("send", [&] { group.send(undefined, 0); });
}

}  // namespace
}  // namespace rehearse
