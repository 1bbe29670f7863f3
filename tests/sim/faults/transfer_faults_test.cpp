// SPDX-License-Identifier: BSD-3-Clause
// Contract: `corrupt` spoils exactly the given elements, or leaves the output unchanged. `reorder` lets a message
// arrive after the sender's next message, unless that message goes to the same peer with the same tag.
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "faulty_world.h"

namespace rehearse::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// The indices of NaNs in rank 1's result of an all-reduce with `size` elements.
std::vector<int> spoilt(const std::string& how, int size = 10) {
  std::vector<int> places;
  const auto body = [&](RankContext& ctx) {
    auto value = at::ones({size});
    ctx.group().allreduce(value)->wait();
    for (int i = 0; ctx.rank() == 1 && i < size; ++i) {
      if (std::isnan(value[i].item<float>())) places.push_back(i);
    }
    if (ctx.rank() != 1) {
      EXPECT_TRUE(value.eq(4).all().item<bool>());
    }
  };
  World world(world_with({"corrupt rank=1 at=allreduce#1 " + how}));
  EXPECT_EQ(world.run(body).verdict, Verdict::ok) << how;
  return places;
}

TEST(Corrupt, ElementAndFraction_SayWhich) {
  EXPECT_EQ(spoilt("with=nan"), std::vector<int>{0});
  EXPECT_EQ(spoilt("element=9"), std::vector<int>{9});
  EXPECT_EQ(spoilt("fraction=0.01"), std::vector<int>{0});
  EXPECT_EQ(spoilt("fraction=0.2"), (std::vector<int>{0, 5}));
  EXPECT_EQ(spoilt("element=4 fraction=0.5"), (std::vector<int>{4, 6, 8}));
  EXPECT_EQ(spoilt("fraction=1").size(), 10u);
}

TEST(Corrupt, ElementThatIsNotThere_DidNotFire) {
  const auto report = run({"corrupt rank=1 at=allreduce#1 element=4"});
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_EQ(report.headline,
            "corrupt rank=1 at=allreduce#1 element=4: allreduce #1 on group \"world\" brings 4 elements, 0 to 3");
}

// The fault counts elements in the tensor's logical order, not in memory order.
TEST(Corrupt, ElementOfATransposedTensor) {
  const auto report = run({"corrupt rank=0 at=broadcast#1 element=1"}, [](RankContext& ctx) {
    auto value = at::arange(6, at::kFloat).reshape({2, 3}).t().contiguous().t();
    ctx.group().broadcast(value)->wait();
    for (int i = 0; i < 6; ++i) {
      const bool is_nan = std::isnan(value[i / 3][i % 3].item<float>());
      EXPECT_EQ(is_nan, ctx.rank() == 0 && i == 1) << i;
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(Corrupt, Stale_LeavesTheOutputAsItWas) {
  const auto report = run({"corrupt rank=2 at=allreduce#1 with=stale", "corrupt rank=1 at=allgather#2 with=stale"},
                          [](RankContext& ctx) {
                            auto value = at::full({3}, static_cast<double>(ctx.rank()));
                            ctx.group().allreduce(value)->wait();
                            EXPECT_EQ(value[2].item<double>(), ctx.rank() == 2 ? 2 : 6);
                            std::vector<at::Tensor> all;
                            for (int i = 0; i < 4; ++i) all.push_back(at::full({1}, -1.0));
                            ctx.group().allgather(all, at::full({1}, static_cast<double>(ctx.rank())))->wait();
                            for (int i = 0; i < 4; ++i) EXPECT_EQ(all[i].item<double>(), ctx.rank() == 1 ? -1 : i);
                          });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.faults[0].times + report.faults[1].times, 2u);
}

// The times at which rank 0's two simultaneous messages arrive.
struct Arrivals {
  VirtualTime first, second;
};

Arrivals arrivals(const std::vector<std::string>& faults, int second_peer, int second_tag) {
  Arrivals arrivals;
  const auto body = [&](RankContext& ctx) {
    const auto receive = [&](int tag, VirtualTime& at) {
      auto value = at::zeros({1});
      ctx.group().recv(value, 0, tag)->wait();
      EXPECT_EQ(value.item<double>(), tag);
      at = ctx.now();
    };
    if (ctx.rank() == 0) {
      const auto one = ctx.group().send(at::full({1}, 1.0), 1, 1);
      const auto two = ctx.group().send(at::full({1}, static_cast<double>(second_tag)), second_peer, second_tag);
      one->wait();
      two->wait();
    }
    auto first = at::zeros({1}), second = at::zeros({1});
    if (ctx.rank() == 1) {
      const auto one = ctx.group().recv(first, 0, 1);
      const auto two = second_peer == 1 ? ctx.group().recv(second, 0, second_tag) : Work();
      // Either message may come first.
      while (!one->isCompleted() || (two && !two->isCompleted())) {
        if (one->isCompleted() && arrivals.first == VirtualTime()) arrivals.first = ctx.now();
        if (two && two->isCompleted() && arrivals.second == VirtualTime()) arrivals.second = ctx.now();
      }
      if (arrivals.first == VirtualTime()) arrivals.first = ctx.now();
      if (two && arrivals.second == VirtualTime()) arrivals.second = ctx.now();
      EXPECT_EQ(first.item<double>(), 1);
    }
    if (ctx.rank() == 2 && second_peer == 2) receive(second_tag, arrivals.second);
  };
  World world(world_with(faults));
  const auto report = world.run(body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  return arrivals;
}

TEST(Reorder, AMessageWithAnotherTag_Overtakes) {
  const auto plain = arrivals({}, 1, 2);
  EXPECT_EQ(plain.first, plain.second);
  const auto other_tag = arrivals({"reorder rank=0 call=send#1 for=1ms"}, 1, 2);
  EXPECT_EQ(other_tag.second, plain.second);
  EXPECT_EQ(other_tag.first, plain.first + plain.first.time_since_epoch());
}

TEST(Reorder, AMessageToAnotherPeer_Overtakes) {
  const auto plain = arrivals({}, 2, 1);
  const auto other_peer = arrivals({"reorder rank=0 call=send#1 for=1ms"}, 2, 1);
  EXPECT_EQ(other_peer.second, plain.second);
  EXPECT_EQ(other_peer.first, plain.first + plain.first.time_since_epoch());
}

TEST(Reorder, NeverWithinAChannel) {
  const auto plain = arrivals({}, 1, 1);
  const auto same = arrivals({"reorder rank=0 call=send#1 for=1ms"}, 1, 1);
  EXPECT_EQ(same.first, plain.first + milliseconds(1));
  EXPECT_EQ(same.second, same.first);
}

TEST(Reorder, WithoutANextMessage_IsLate) {
  const auto body = [](RankContext& ctx) {
    auto value = at::full({1}, static_cast<double>(ctx.rank()));
    if (ctx.rank() == 0) ctx.group().send(value, 1)->wait();
    if (ctx.rank() == 1) ctx.group().recv(value, 0)->wait();
    EXPECT_EQ(value.item<double>(), ctx.rank() == 1 ? 0 : ctx.rank());
  };
  const auto plain = run(std::vector<std::string>{}, body);
  const auto report = run({"reorder rank=0 call=send#1 for=300us"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, plain.end_time + microseconds(300));
  EXPECT_EQ(run({"reorder rank=0 at=#1 for=300us"}).faults[0].why_not, "#1 on group \"world\" was an allreduce");
}

// A buffered send has completed when it moves: it may fail, but nothing can make it late. Its receive may be late.
TEST(BufferedSend, FailsButIsNotLate) {
  const auto verdict_with = [](const std::string& fault) {
    auto options = world_with({fault});
    options.buffered_sends = true;
    const auto report = run(options, [](RankContext& ctx) {
      auto value = at::ones({1});
      if (ctx.rank() == 0) ctx.group().send(value, 1)->wait();
      if (ctx.rank() == 1) ctx.group().recv(value, 0)->wait();
    });
    return report.verdict;
  };
  EXPECT_EQ(verdict_with("reorder rank=0 call=send#1 for=300us"), Verdict::fault_not_fired);
  EXPECT_EQ(verdict_with("delay rank=0 call=send#1 for=300us"), Verdict::fault_not_fired);
  EXPECT_EQ(verdict_with("fail_op rank=0 call=send#1"), Verdict::rank_failed);
  EXPECT_EQ(verdict_with("delay rank=1 call=recv#1 for=300us"), Verdict::ok);
}

}  // namespace
}  // namespace rehearse::test
